package errortext

// chain is an error and what caused it.
type chain struct{ last, first Error }

// error says both.
func (c chain) error() Error {
	if c.first == c.last {
		return c.last
	}
	return c.last.because(c.first.Class, c.first.Message)
}
