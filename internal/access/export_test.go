package access

// People is how many people the limiter remembers.
func (l *Limiter) People() int { return len(l.people) }
