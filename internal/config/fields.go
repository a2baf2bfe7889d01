package config

import (
	"strings"

	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// read reads the whole file, section by section. It checks each value on its own;
// what they say together is checked later, see [Parse].
func (c *Config) read(root value) error {
	c.noteSections(root)

	return root.fields(map[string]func(value) error{
		"policy":       into(&c.policy, value.policy),
		"policies":     c.readPolicies,
		"workers":      into(&c.workers, workers),
		"trash":        c.readTrash,
		"ttr":          into(&c.ttr, positive),
		"expired":      into(&c.expired, expired),
		"dead_letter":  c.readDeadLetter,
		"retention":    c.readRetention,
		"redaction":    c.readRedaction,
		"rules":        c.readRules,
		"unknown_type": into(&c.UnknownType, word(retry.Unknown.Valid, "unknown; use hold, fail, dead_letter or delete")),
		"hosts":        into(&c.Hosts, hosts),
		"access":       c.readAccess,
		"limits":       c.readLimits,
		"base_path": into(&c.basePath,
			word(IsBasePath, "not a path such as /redrive: use letters, digits, . _ - and slashes, without one at the end")),
		"queues":   c.readQueues,
		"types":    c.readTypes,
		"handlers": c.readHandlers,
		"sources":  c.readSources,
	})
}

// into makes a reader of a field out of a reader of its kind of value.
func into[T any](field *T, read func(value) (T, error)) func(value) error {
	return func(v value) (err error) {
		*field, err = read(v)
		return err
	}
}

// optional is into for a field that tells "not said" apart.
func optional[T any](field **T, read func(value) (T, error)) func(value) error {
	return func(v value) error {
		got, err := read(v)
		*field = &got
		return err
	}
}

// readQueues reads the queues. A name without anything below it is no error: it
// makes the queue known before its first job.
func (c *Config) readQueues(v value) error {
	return v.entries(func(name string, v value) error {
		if err := job.CheckQueue(name); err != nil {
			return v.wrong("%s", problem(err))
		}

		var q queue
		err := v.fields(map[string]func(value) error{
			"workers":     optional(&q.workers, workers),
			"policy":      into(&q.policy, value.policy),
			"ttr":         into(&q.ttr, positive),
			"expired":     into(&q.expired, expired),
			"dead_letter": q.readDeadLetter,
			"retention": func(v value) (err error) {
				c.retention.Queues[name], err = readAges(v)
				return err
			},
		})
		c.queues[name] = q

		return err
	})
}

// readPolicies reads the policies to which the file gives names. Names that
// already mean something else are refused.
func (c *Config) readPolicies(v value) error {
	return v.entries(func(name string, v value) (err error) {
		if _, taken := retry.Preset(name); taken {
			return v.wrong("is the name of a preset, which cannot be changed; choose another name, and write use: %s in it", name)
		}

		if name == "default" {
			return v.wrong("is reserved for the field policy of this file; write the policy there, or choose another name")
		}

		if job.CheckQueue(name) != nil {
			return v.wrong("is not the name of a policy: letters, digits, dot, dash and underscore")
		}

		if len(c.policies) == retry.MaxEntries {
			return v.wrong("exceeds the limit of %d policies", retry.MaxEntries)
		}

		c.policies[name], err = v.policy()

		return err
	})
}

// readTypes reads what holds for types of jobs, exact ones and prefixes.
func (c *Config) readTypes(v value) error {
	return v.entries(func(pattern string, v value) error {
		if err := checkPattern(pattern, v); err != nil {
			return err
		}

		var k kind
		err := v.fields(map[string]func(value) error{
			"policy": into(&k.policy, value.policy),
			"ttr":    into(&k.ttr, positive),
			"retention": func(v value) (err error) {
				c.retention.Types[pattern], err = readAges(v)
				return err
			},
		})
		c.types[pattern] = k

		return err
	})
}

// readHandlers reads what runs the jobs of a type. Package handler checks
// addresses and programs when it builds them.
func (c *Config) readHandlers(v value) error {
	return v.entries(func(pattern string, v value) error {
		if err := checkPattern(pattern, v); err != nil {
			return err
		}

		var h handler.Config
		err := v.fields(map[string]func(value) error{
			"http": optional(&h.HTTP, readHTTP),
			"exec": optional(&h.Exec, readExec),
		})
		if err == nil && (h.HTTP == nil) == (h.Exec == nil) {
			err = v.wrong("needs exactly one of http and exec")
		}

		c.Handlers[pattern] = h

		return err
	})
}

// readExec reads a program that does the work of a job; there is no shell, so
// it is a list.
func readExec(v value) (e handler.Exec, err error) {
	err = v.fields(map[string]func(value) error{
		"command": into(&e.Command, textList),
		"timeout": into(&e.Timeout, positive),
	})
	if err == nil && len(e.Command) == 0 {
		err = v.wrong("needs a command, for example [/usr/local/bin/report, --quick]")
	}

	return e, err
}

// checkPattern refuses what is neither a type of job nor a prefix, as
// "report.*". The error is about the value at that name.
func checkPattern(pattern string, v value) error {
	name := strings.TrimSuffix(pattern, ".*")
	if strings.Contains(name, "*") || name == "" && pattern != "" {
		return v.wrong(`is not a pattern; write a job type, or a prefix such as "report.*"`)
	}

	if err := job.CheckType(name); err != nil {
		return v.wrong("%s", problem(err))
	}

	return nil
}
