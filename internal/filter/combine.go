package filter

import (
	"cmp"
	"fmt"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
)

// Combine adds the parts of another filter. Both may say the same, but never two
// different things of one part: that is a *invalid.Error.
func (f Filter) Combine(g Filter) (Filter, error) {
	for _, q := range qualifiers() {
		mine, other := q.text(&f), q.text(&g)
		if other == "" {
			continue
		}
		if mine != "" && mine != other {
			return Filter{}, &invalid.Error{Field: q.name, Problem: fmt.Sprintf("is given twice, as %q and as %q", clip.Text(mine, 64), clip.Text(other, 64))}
		}
		if err := q.read(&f, q.name, other, time.Time{}); err != nil {
			return Filter{}, err
		}
	}
	f.Text = cmp.Or(f.Text, g.Text)
	return f, nil
}

// ReadPart reads the value of one qualifier, as a parameter of an address has
// it. An empty value says nothing.
func ReadPart(name, value string, now time.Time) (f Filter, err error) {
	if value == "" {
		return Filter{}, nil
	}
	err = f.read(name, word{name: name, value: value}, now, map[string]bool{})
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		return Filter{}, err
	}
	return f, nil
}
