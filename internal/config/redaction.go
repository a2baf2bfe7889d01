package config

import (
	"errors"

	"redrive/internal/envelope"
	"redrive/internal/redact"
)

// Redactor hides what the file says must not be shown.
func (c *Config) Redactor() *redact.Redactor { return c.redactor }

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

func onePath(s string) redact.Options { return redact.Options{Paths: []string{s}} }

// hidden reads a list of which each entry is an option by itself.
func hidden(to *[]string, of func(string) redact.Options) func(value) error {
	return into(to, listOf(func(item value) (string, error) {
		s, err := item.text()
		if err != nil {
			return "", err
		}
		var wrong *redact.Error
		if _, err := redact.New(of(s)); errors.As(err, &wrong) {
			return "", item.wrong("%s", wrong)
		}
		return s, nil
	}))
}
