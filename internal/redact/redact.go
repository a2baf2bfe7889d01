// Package redact hides secrets in what jobs bring along: in JSON by the names
// of keys and by paths, in other text where a key stands before a value.
//
// In JSON a hidden value is replaced in its place, and every other byte stays:
// big numbers, members that come twice, white space. Strings that hold JSON, or
// text with a secret in it, are searched too. What is put there instead is a
// token, "••••••#1", with a number of its own in each document. So a document
// can be shown, edited and sent back: [Redactor.Merge] puts the secrets back
// where their tokens still stand, and refuses a token anywhere else.
//
// Names are compared by their words, without case: words end at dashes,
// underscores, blanks and dots, at digits and where capitals begin. A name is
// hidden when it is one of the [defaultKeys] or of [Options.Keys], or has one as
// its words, also in the plural: smtp_password, stripeSecretKey, X-Api-Key,
// private_key_pem, passwords; so is a word that ends with one of five letters or
// more: smtppassword, but not possession. A name stays readable whose last word says
// that it tells something about the secret (token_count, password_reset_at,
// cookie_name, see about), and so does one that was taken out by its whole name:
// "-build_token".
//
// So is the value of a pair that is called so in JSON: {"name": "pin", "value": 1},
// also of key, field or header and val, in either order.
//
// A path leads from the root of a payload:
//
//	$.customer.email     a member
//	$["a b"].c           a member with any name
//	$.items[*].card      of each element
//	$.items[0]           of the first element
//
// In a text, as of an error, [Redactor.Text] looks for names before values, for the
// lines that belong to them, and for JSON. It is meant for the whole of a text: what
// was cut out of it may have lost its name.
//
// A value nested deeper than 512 brackets is hidden unseen, and so is a value in
// more than eight strings of JSON within one another. A document that is cut off,
// or is no JSON, is read as far as it is JSON, and as a text as well.
//
// Nothing here knows jobs; nothing fails on any input.
package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options say what is hidden beside the names that are by default.
type Options struct {
	Keys  []string            // "pan" or "+pan" hides a name, "-token" shows it
	Paths []string            // in payloads
	Types map[string][]string // further paths, for types of jobs, exact or as "email.*"

	// Inside are the members below which an envelope holds a payload, as "data" or
	// "body.data". Wrapped is the type of jobs whose payload is an envelope that
	// could not be read, so that it is unknown whose envelope it is.
	Wrapped string
	Inside  []string
}

// Redactor hides what its options say. It never changes and can be used by many
// goroutines.
type Redactor struct {
	names   *names
	paths   []path
	types   map[string][]path
	inside  []string
	wrapped string
	every   *Redactor // of jobs of the type wrapped
}

// Error says which of the options is wrong, and why.
type Error struct {
	Value   string
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("%q %s", e.Value, e.Problem) }

// New returns a redactor, or an *Error.
func New(o Options) (*Redactor, error) {
	r := &Redactor{names: &names{hidden: map[string]bool{}, shown: map[string]bool{}}, types: map[string][]path{}}
	for _, key := range defaultKeys() {
		r.names.hidden[normal(key)] = true
	}

	for _, key := range o.Keys {
		if err := r.key(key); err != nil {
			return nil, err
		}
	}

	var err error

	r.paths, err = parsePaths(o.Paths)
	if err != nil {
		return nil, err
	}

	for _, typ := range slices.Sorted(maps.Keys(o.Types)) {
		r.types[typ], err = parsePaths(o.Types[typ])
		if err != nil {
			return nil, err
		}
	}

	r.inside, r.wrapped, r.every = o.Inside, o.Wrapped, r.anywhere(o.Inside)

	return r, nil
}

// anywhere returns a redactor that looks for all the paths, of whatever type, in
// a document and in what it may be the envelope of.
func (r *Redactor) anywhere(inside []string) *Redactor {
	all := &Redactor{names: r.names, paths: slices.Clone(r.paths)}
	for _, typ := range slices.Sorted(maps.Keys(r.types)) {
		all.paths = append(all.paths, r.types[typ]...)
	}

	return all.under(append([]string{""}, inside...))
}

// Default returns the redactor of no options.
func Default() *Redactor {
	r, err := New(Options{})
	if err != nil { // unreachable: there is nothing to be wrong
		panic(err)
	}

	return r
}

// key adds a name to the hidden ones, or takes one out.
func (r *Redactor) key(key string) error {
	name := strings.TrimLeft(key, "+-")
	out := strings.HasPrefix(key, "-")
	switch {
	case normal(name) == "" || len(key) > maxKey:
		return &Error{key, fmt.Sprintf("is not the name of a key such as +pan or -token, of at most %d bytes", maxKey)}
	case out && !r.names.hide(name):
		return &Error{key, "removes a name that is not hidden"}
	}

	delete(r.names.hidden, normal(name))
	delete(r.names.shown, normal(name))

	if out {
		r.names.shown[normal(name)] = true
	} else {
		r.names.hidden[normal(name)] = true
	}

	return nil
}

// For returns the redactor of jobs of a type.
func (r *Redactor) For(typ string) *Redactor {
	if typ == r.wrapped && typ != "" {
		return r.every
	}

	var more []path
	for pattern, paths := range r.types {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if pattern == typ || isPrefix && strings.HasPrefix(typ, prefix) {
			more = append(more, paths...)
		}
	}

	if len(more) == 0 {
		return r
	}

	return &Redactor{names: r.names, paths: slices.Concat(r.paths, more), inside: r.inside}
}

// Around returns the redactor of the envelope of a payload.
func (r *Redactor) Around() *Redactor {
	if len(r.inside) == 0 {
		return r
	}
	return r.under(r.inside)
}

// under returns a redactor that looks for the paths below places of the document.
func (r *Redactor) under(places []string) *Redactor {
	all := &Redactor{names: r.names}
	for _, place := range places {
		var above path
		for _, name := range strings.FieldsFunc(place, func(c rune) bool { return c == '.' }) {
			above = append(above, step{name: name})
		}

		for _, p := range r.paths {
			all.paths = append(all.paths, slices.Concat(above, p))
		}
	}

	return all
}

// ByKey returns a redactor without paths.
func (r *Redactor) ByKey() *Redactor { return &Redactor{names: r.names} }

// rules changes whenever something else is hidden with the same options, or when the
// fingerprints so far did not tell redactors apart.
const rules = "12"

// Fingerprint tells redactors apart that do not hide the same.
func (r *Redactor) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n", rules, r.names.listed(), r.paths)

	for _, typ := range slices.Sorted(maps.Keys(r.types)) {
		fmt.Fprintf(h, "%q %q\n", typ, r.types[typ])
	}

	return hex.EncodeToString(h.Sum(nil))
}
