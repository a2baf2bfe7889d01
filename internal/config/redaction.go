package config

import (
	"redrive/internal/envelope"
	"redrive/internal/redact"
)

// Redactor hides what the file says must not be shown.
func (c *Config) Redactor() *redact.Redactor { return c.redactor }

// readRedaction reads which names and paths are hidden beside the defaults.
// It tries each entry on its own, so that an error is about its line.
func (c *Config) readRedaction(v value) error {
	o := redact.Options{Wrapped: envelope.Unread, Inside: []string{"data", "body.data"}}

	err := v.fields(map[string]func(value) error{
		"keys":  hidden(&o.Keys, func(s string) redact.Options { return redact.Options{Keys: []string{s}} }),
		"paths": hidden(&o.Paths, onePath),
		"types": func(v value) error {
			o.Types = map[string][]string{}

			return v.entries(func(pattern string, v value) error {
				if err := checkPattern(pattern, v); err != nil {
					return err
				}

				var paths []string
				err := hidden(&paths, onePath)(v)
				o.Types[pattern] = paths

				return err
			})
		},
	})
	if err == nil {
		c.redactor, err = redact.New(o)
	}

	return err
}

// onePath is a redaction of nothing but one path.
func onePath(s string) redact.Options { return redact.Options{Paths: []string{s}} }

// hidden reads a list in which each entry alone is an option.
func hidden(to *[]string, of func(string) redact.Options) func(value) error {
	return into(to, listOf(func(item value) (string, error) {
		s, err := item.text()
		if err != nil {
			return "", err
		}

		if _, err := redact.New(of(s)); err != nil {
			return "", item.wrong("%s", err)
		}

		return s, nil
	}))
}
