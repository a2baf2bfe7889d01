package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"redrive/internal/clip"
	"redrive/internal/wire"
)

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

// duration reads a duration. A number without a unit gets that of the example where the two
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
