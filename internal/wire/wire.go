// Package wire is how retry policies, durations, times and the cursors of lists
// are written in JSON, in addresses, in the configuration file and on the
// command line.
package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sosodev/duration"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/retry"
)

// ParseDuration reads a duration as people and programs write it, everywhere
// alike: "30s", "2m", "1h30m", also as pages show it, "2 min"; before that whole
// days, "7d", "1d12h"; or ISO 8601, "PT1.5S". It is exact to the microsecond.
// Negative ones are refused, and so are years and months: they have no fixed
// length.
func ParseDuration(s string) (time.Duration, error) {
	if d, ok := parseDuration(s); ok {
		return d, nil
	}

	if _, err := strconv.ParseUint(s, 10, 32); err == nil {
		return 0, fmt.Errorf("%q has no unit; write for example %ss", s, s)
	}

	if positive, negative := strings.CutPrefix(s, "-"); negative {
		if _, ok := parseDuration(positive); ok {
			return 0, fmt.Errorf("%q must not be negative", s)
		}
	}

	return 0, fmt.Errorf("%q is not a duration of at most ten years, for example 5s, 2m, 7d or PT1H", clip.Text(s, 64))
}

// parseDuration reports false for what is no duration, or a wrong one.
func parseDuration(s string) (time.Duration, bool) {
	parse := inDays
	if strings.HasPrefix(s, "P") {
		parse = iso
	}

	d, err := parse(s)

	return d.Round(time.Microsecond), err == nil && d >= 0 && d <= maxDays*24*time.Hour
}

// maxDays bounds every duration that is written anywhere: ten years.
const maxDays = 3660

// iso reads an ISO 8601 duration. What is too long for a time.Duration is an error.
func iso(s string) (time.Duration, error) {
	d, err := duration.Parse(s)
	switch {
	case err != nil:
		return 0, err
	case d.Negative || d.Years != 0 || d.Months != 0 || !strings.ContainsAny(s, "0123456789"):
		return 0, fmt.Errorf("%q has no fixed length", s)
	case d.Weeks*7+d.Days > maxDays || d.Hours > maxDays*24 || d.Minutes > maxDays*24*60 || d.Seconds > maxDays*24*60*60:
		return 0, fmt.Errorf("%q is too long", s)
	}

	return d.ToTimeDuration(), nil
}

// inDays reads a duration in Go's form that may begin with days. It may be
// negative or too long.
func inDays(s string) (time.Duration, error) {
	s = strings.NewReplacer(" ", "", "min", "m").Replace(s)

	number, rest, ok := strings.Cut(s, "d")
	days, err := strconv.ParseUint(number, 10, 16)
	if !ok || err != nil {
		return time.ParseDuration(s)
	}

	d := time.Duration(days) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}

	more, err := time.ParseDuration(rest)
	if err == nil && (more < 0 || more > maxDays*24*time.Hour) {
		err = fmt.Errorf("%q is too long, or goes back", rest)
	}

	return d + more, err
}

// FormatDuration writes the ISO 8601 form in days, hours, minutes and seconds,
// the units that ParseDuration reads back exactly.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour

	return (&duration.Duration{
		Days:    float64(d / day),
		Hours:   float64(d % day / time.Hour),
		Minutes: float64(d % time.Hour / time.Minute),
		Seconds: (d % time.Minute).Seconds(),
	}).String()
}

// FormatTime writes a time as answers show it: RFC 3339 in UTC with
// microseconds, which is what the store keeps. The zero time is empty.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// EncodeCursor writes a place in a list, the numbers by which it is ordered, as
// one word for an address. The kind tells the cursors of different lists apart.
func EncodeCursor(kind string, numbers ...int64) string {
	text := kind
	for _, n := range numbers {
		text += "." + strconv.FormatInt(n, 10)
	}

	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// DecodeCursor reads the n numbers of a cursor of that kind. It reports false
// for anything that EncodeCursor did not make: what cannot be read is not
// written back as the same text.
func DecodeCursor(kind, cursor string, n int) (numbers []int64, ok bool) {
	text, _ := base64.RawURLEncoding.DecodeString(cursor)
	for _, part := range strings.Split(string(text), ".")[1:] {
		number, _ := strconv.ParseInt(part, 10, 64)
		numbers = append(numbers, number)
	}

	return numbers, len(numbers) == n && EncodeCursor(kind, numbers...) == cursor
}

// Policy is a retry policy as people write it. Its field order is the order in
// which answers show it.
type Policy struct {
	// How many attempts a run has, the first one included.
	MaxAttempts int `json:"max_attempts"`
	// How the waits grow.
	Strategy retry.Strategy `json:"strategy"`
	// The first wait, as an ISO 8601 duration.
	InitialInterval string `json:"initial_interval"`
	// The factor or the exponent by which the waits grow.
	Coefficient float64 `json:"coefficient"`
	// The waits themselves, instead of a strategy, as ISO 8601 durations.
	Schedule []string `json:"schedule,omitempty"`
	// The longest wait, as an ISO 8601 duration.
	MaxInterval string `json:"max_interval"`
	// false, or the smallest and the largest factor of a wait.
	Jitter any `json:"jitter"`
	// The classes of errors after which a run is over.
	NonRetryable []string `json:"non_retryable_errors"`
	// What becomes of a job whose attempts are used up.
	OnExhaustion retry.Action `json:"on_exhaustion"`
}

// PolicyOf is a policy as people write it.
func PolicyOf(p retry.Policy) Policy {
	w := Policy{
		MaxAttempts:     p.MaxAttempts,
		Strategy:        p.Strategy,
		InitialInterval: FormatDuration(p.InitialInterval),
		Coefficient:     p.Coefficient,
		MaxInterval:     FormatDuration(p.MaxInterval),
		Jitter:          false,
		NonRetryable:    append([]string{}, p.NonRetryable...),
		OnExhaustion:    p.OnExhaustion,
	}
	for _, d := range p.Schedule {
		w.Schedule = append(w.Schedule, FormatDuration(d))
	}

	if p.Jitter.On() {
		w.Jitter = []float64{p.Jitter.Low, p.Jitter.High}
	}

	return w
}

// EncodePolicy writes a policy as JSON, each field named as people write it.
// Equal policies give equal bytes.
func EncodePolicy(p retry.Policy) []byte {
	data, err := json.Marshal(PolicyOf(p))
	if err != nil { // unreachable unless a policy was stored that Validate refuses
		panic(fmt.Sprintf("wire.EncodePolicy(%+v): %v", p, err))
	}

	return data
}

// DecodePolicy is the inverse of EncodePolicy.
func DecodePolicy(data []byte) (retry.Policy, error) {
	patch, err := DecodePatch(data)
	return retry.Policy{}.With(patch), err
}

// DecodePatch reads a partial policy from a JSON object, or from a string that
// names a whole one. It returns what it could read, and a *invalid.Error for each
// field that it could not, joined in the order of their names, which have no prefix.
// The values are not yet checked against each other: see [retry.Policy.Validate].
func DecodePatch(data []byte) (retry.Patch, error) {
	var patch retry.Patch

	// "policy": "gentle" is short for "policy": {"use": "gentle"}.
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' {
		if err := decodePolicyField(&patch, "use", data); err != nil {
			return patch, &invalid.Error{Field: "policy", Problem: err.Error()}
		}
		return patch, nil
	}

	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		return patch, &invalid.Error{Field: "policy", Problem: "must be an object, or the name of a policy"}
	}

	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		said := patch // what cannot be read leaves nothing behind
		if err := decodePolicyField(&said, name, fields[name]); err != nil {
			wrong = append(wrong, &invalid.Error{Field: name, Problem: err.Error()})
			continue
		}

		patch = said
	}

	return patch, errors.Join(wrong...)
}

// policyFields are the names of the fields of a policy as people write it.
var policyFields = []string{
	"coefficient", "initial_interval", "jitter", "max_attempts", "max_interval", "non_retryable_errors", "on_exhaustion", "schedule",
	"strategy", "use",
}

// decodePolicyField reads one field into the patch. Its error does not name the
// field.
func decodePolicyField(p *retry.Patch, name string, raw []byte) (err error) {
	if bytes.Equal(raw, []byte("null")) {
		return fmt.Errorf("must not be null; leave the field out")
	}

	switch name {
	case "use":
		p.Use, err = nameField(raw)
	case "max_attempts":
		p.MaxAttempts, err = field[int](raw, "a whole number")
	case "strategy":
		p.Strategy, err = field[retry.Strategy](raw, "a string")
	case "initial_interval":
		p.InitialInterval, err = durationField(raw)
	case "coefficient":
		p.Coefficient, err = field[float64](raw, "a number")
	case "schedule":
		p.Schedule, err = scheduleField(raw)
	case "max_interval":
		p.MaxInterval, err = durationField(raw)
	case "jitter":
		p.Jitter, err = jitterField(raw)
	case "non_retryable_errors":
		p.NonRetryable, err = errorsField(raw)
	case "on_exhaustion":
		p.OnExhaustion, err = field[retry.Action](raw, "a string")
	default:
		err = fmt.Errorf("no such field in a policy%s; the fields are %s",
			invalid.DidYouMean(name, policyFields), strings.Join(policyFields, ", "))
	}

	return err
}

// field reads a value of one type; want names the type for people.
func field[T any](raw []byte, want string) (*T, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("must be %s, not %s", want, clip.Text(string(raw), 64))
	}

	return &v, nil
}

// nameField reads the name of a whole policy.
func nameField(raw []byte) (string, error) {
	name, err := field[string](raw, "the name of a policy")
	if err == nil && *name == "" {
		err = fmt.Errorf("must name a policy")
	}

	if err != nil {
		return "", err
	}

	return *name, nil
}

func durationField(raw []byte) (*time.Duration, error) {
	s, err := field[string](raw, "a duration in quotes, for example \"5s\"")
	if err != nil {
		return nil, err
	}

	d, err := ParseDuration(*s)

	return &d, err
}

func scheduleField(raw []byte) (*[]time.Duration, error) {
	entries, err := listField(raw, "a list of durations, for example [\"1s\", \"5s\"]")
	if err != nil {
		return nil, err
	}

	schedule := make([]time.Duration, len(*entries))
	for i, s := range *entries {
		schedule[i], err = ParseDuration(s)
		if err != nil {
			return nil, err
		}
	}

	return &schedule, nil
}

// errorsField reads a list of types of errors.
func errorsField(raw []byte) (*[]string, error) {
	entries, err := listField(raw, "a list of strings")
	if err != nil {
		return nil, err
	}

	for _, s := range *entries {
		if len(s) > retry.MaxErrorType {
			return nil, fmt.Errorf("%q is longer than %d bytes", clip.Text(s, 64), retry.MaxErrorType)
		}
	}

	return entries, nil
}

// listField reads a list of strings that is not too long.
func listField(raw []byte, want string) (*[]string, error) {
	entries, err := field[[]string](raw, want)
	if err == nil && len(*entries) > retry.MaxEntries {
		err = fmt.Errorf("has %d entries, at most %d are allowed", len(*entries), retry.MaxEntries)
	}

	return entries, err
}

// jitterField reads true (the Open Job Spec's pair), false, or a pair.
func jitterField(raw []byte) (*retry.Jitter, error) {
	if on, err := field[bool](raw, ""); err == nil {
		if *on {
			return &retry.Jitter{Low: 0.5, High: 1.5}, nil
		}
		return &retry.Jitter{}, nil
	}

	pair, err := field[[]float64](raw, "")
	if err != nil || len(*pair) != 2 {
		return nil, fmt.Errorf("must be true, false or two factors, for example [0.5, 1.5]")
	}

	return &retry.Jitter{Low: (*pair)[0], High: (*pair)[1]}, nil
}
