package form

// Chain is an error and what caused it.
type Chain struct {
	Last  Error // that was thrown last
	First Error // that caused it
}

// Joined is the last error, which says what caused it in the end.
func (c Chain) Joined() Error {
	if c.First == c.Last {
		return c.Last
	}
	return c.Last.Because(c.First.Class, c.First.Message)
}
