package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"redrive/internal/clip"
	"redrive/internal/envelope"
	"redrive/internal/handler"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retry"
	"redrive/internal/wire"
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

// hosts reads names as a browser sends them, with a port or without: anything
// else would never match.
func hosts(v value) ([]string, error) {
	return listOf(word(isHost, "not a host; write redrive.example, 10.0.0.7:8080 or https://redrive.example:8443"))(v)
}

// isHost reports whether s is a name or an address, with a port or without, and
// with the scheme of the dashboard's pages or without.
func isHost(s string) bool {
	if scheme, rest, ok := strings.Cut(strings.ToLower(s), "://"); ok {
		if scheme != "http" && scheme != "https" {
			return false
		}

		s = rest
	}

	if name, port, err := net.SplitHostPort(s); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}

		s = name
	} else if inner, ok := strings.CutPrefix(s, "["); ok {
		s = strings.TrimSuffix(inner, "]")
	}

	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}

	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// workers reads how many jobs of a queue run at once.
func workers(v value) (int, error) { return v.upTo(maxWorkers, "workers") }

// upTo is a whole number from 1 to most.
func (v value) upTo(most int, of string) (int, error) {
	n, err := v.integer()
	if err == nil && (n < 1 || n > most) {
		err = v.wrong("%d is not a valid number of %s; use 1 to %d", n, of, most)
	}

	return n, err
}

// word makes a reader of a text that is one of a few words; others lists them.
func word[T ~string](valid func(T) bool, others string) func(value) (T, error) {
	return func(v value) (T, error) {
		s, err := v.text()
		if err == nil && !valid(T(s)) {
			err = v.wrong("%q is "+others, clip.Text(s, 64))
		}

		return T(s), err
	}
}

// positive reads a duration that is longer than zero.
func positive(v value) (time.Duration, error) { return v.longerThanZero("30s") }

func (v value) longerThanZero(example string) (time.Duration, error) {
	if v.sign() <= 0 {
		return 0, v.wrong("must be longer than zero")
	}
	return v.duration(example)
}

// span is a duration, zero included.
func span(v value) (time.Duration, error) { return v.duration("30s") }

// duration reads a duration. What lacks its unit gets that of the example where the two
// make a duration.
func (v value) duration(example string) (time.Duration, error) {
	number := v.scalar()
	if _, err := strconv.ParseFloat(number, 64); err == nil {
		if with := number + example[len(example)-1:]; v.sign() > 0 && isDuration(with) {
			example = with
		}
		return 0, v.wrong("must be a duration with its unit, for example %s, not %s", example, clip.Text(v.node.String(), 40))
	}

	s, err := v.text()
	if err != nil {
		return 0, err
	}

	d, err := wire.ParseDuration(s)
	if err != nil {
		err = v.wrong("%v", err)
	}

	return d, err
}

func isDuration(s string) bool {
	_, err := wire.ParseDuration(s)
	return err == nil
}

// sign is -1 for a number or a duration below zero, 0 for zero, and otherwise 1.
func (v value) sign() int {
	positive, negative := strings.CutPrefix(v.scalar(), "-")

	n, notANumber := strconv.ParseFloat(positive, 64)
	d, notADuration := wire.ParseDuration(positive)
	switch {
	case notANumber == nil && n == 0 || notADuration == nil && d == 0:
		return 0
	case negative && (notANumber == nil || notADuration == nil):
		return -1
	}

	return 1
}

// scalar is a number or a string as it is written; empty for anything else.
func (v value) scalar() string {
	switch n := v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return n.String()
	case *ast.StringNode:
		return n.Value
	}

	return ""
}

// expired reads what becomes of a job whose time to live is over.
func expired(v value) (retry.Action, error) {
	ends := func(a retry.Action) bool { return a == retry.DeadLetter || a == retry.Discard }
	return word(ends, "unknown; use dead_letter or discard")(v)
}

// policy reads a partial policy, or the name of a whole one, by the rules of package
// job. It checks each field on its own: what places say together is checked later. With
// an error it returns what that check needs.
func (v value) policy() (retry.Patch, error) {
	data, err := v.json()
	if err != nil {
		return anyIntervals(), err
	}

	patch, err := wire.DecodePatch(data)
	wrong := split(err)
	if n := patch.MaxAttempts; n != nil && *n == 0 {
		wrong = append(wrong, invalid.Errorf("max_attempts",
			"0 is not possible, because every job runs at least once; write 1 to run it once and never again"))
	}

	wrong = append(wrong, retry.Default().With(anyIntervals()).With(patch).Problems()...)
	if len(wrong) == 0 {
		return patch, nil
	}

	var all []error
	for _, err := range wrong {
		if field := fieldOf(err); field == "policy" { // it is about the policy itself
			all = append(all, v.wrong("%s", problem(err)))
		} else {
			all = append(all, v.file.wrong(join(v.path, field), problem(err)))
		}
	}

	return readable(patch, wrong), errors.Join(all...)
}

// anyIntervals are the widest possible intervals. They are assumed after an error, so that
// no second error follows from it.
func anyIntervals() retry.Patch {
	return retry.Patch{InitialInterval: new(time.Duration(1)), MaxInterval: new(time.Duration(math.MaxInt64))}
}

// readable is what is left of a policy with errors for the checks of other places: the
// policy on which it is based, and its intervals, each as wide as possible if it is wrong.
func readable(patch retry.Patch, wrong []error) retry.Patch {
	left := retry.Patch{Use: patch.Use, InitialInterval: patch.InitialInterval, MaxInterval: patch.MaxInterval}
	unknown := anyIntervals()
	for _, err := range wrong {
		switch fieldOf(err) {
		case "initial_interval":
			left.InitialInterval = unknown.InitialInterval
		case "max_interval":
			left.MaxInterval = unknown.MaxInterval
		case "use", "policy":
			left = unknown
		}
	}

	return left
}

// split lists the errors that are joined in another.
func split(err error) (all []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			all = append(all, split(err)...)
		}
		return all
	}

	if err == nil {
		return nil
	}

	return []error{err}
}

// problem is an error about a field without the field's name.
func problem(err error) string {
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		return wrong.Problem
	}
	return fmt.Sprint(err)
}

// fieldOf names the field that an error is about, or nothing.
func fieldOf(err error) string {
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		return wrong.Field
	}
	return ""
}

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
