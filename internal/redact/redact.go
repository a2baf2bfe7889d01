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
// Names are compared without case, dashes, underscores and blanks. A path leads
// from the root of a payload:
//
//	$.customer.email     a member
//	$["a b"].c           a member with any name
//	$.items[*].card      of each element
//	$.items[0]           of the first element
//
// Nothing here knows jobs; nothing fails on any input.
package redact

import (
	"fmt"
	"slices"
	"strings"
)

// Options say what is hidden beside the names that are by default.
type Options struct {
	Keys  []string            // "pan" or "+pan" hides a name, "-token" shows it
	Paths []string            // in payloads
	Types map[string][]string // further paths, for types of jobs, exact or as "email.*"

	// Wrapped is a type of jobs whose payload holds that of another job, of an
	// unknown type, under the member Inside.
	Wrapped, Inside string
}

// Redactor hides what its options say. It never changes and can be used by many
// goroutines.
type Redactor struct {
	keys    map[string]bool
	paths   []path
	types   map[string][]path
	wrapped string
	every   *Redactor // of jobs of the type wrapped
}

// defaults are the names that are hidden unless they are taken out.
const defaults = `password passwd passphrase pwd secret token access_token refresh_token id_token auth_token session_token
	csrf_token api_token user_password db_password new_password old_password current_password api_key apikey x_api_key
	x_auth_token x_csrf_token api_secret secret_key access_key secret_access_key aws_secret_access_key authorization
	proxy_authorization cookie set_cookie session_id card_number credit_card cc_number cvv cvc cvv2 iban ssn private_key
	client_secret signing_key encryption_key webhook_secret otp pin`

// DefaultKeys lists the names that are hidden by default.
func DefaultKeys() []string { return strings.Fields(defaults) }

// Error says which of the options is wrong, and why.
type Error struct {
	Value   string
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("%q %s", e.Value, e.Problem) }

// New returns a redactor, or an *Error.
func New(o Options) (*Redactor, error) {
	r := &Redactor{keys: map[string]bool{}, types: map[string][]path{}}
	for _, key := range DefaultKeys() {
		r.keys[normal(key)] = true
	}
	for _, key := range o.Keys {
		if err := r.key(key); err != nil {
			return nil, err
		}
	}
	var err error
	if r.paths, err = parsePaths(o.Paths); err != nil {
		return nil, err
	}
	for typ, paths := range o.Types {
		if r.types[typ], err = parsePaths(paths); err != nil {
			return nil, err
		}
	}
	r.wrapped, r.every = o.Wrapped, r.inside(o.Inside)
	return r, nil
}

// inside returns a redactor that looks for all the paths, of whatever type, both
// in a document and below a member of it.
func (r *Redactor) inside(member string) *Redactor {
	all := &Redactor{keys: r.keys, paths: slices.Clone(r.paths)}
	for _, paths := range r.types {
		all.paths = append(all.paths, paths...)
	}
	all.paths = append(all.paths, all.Under(member).paths...)
	return all
}

// Default returns the redactor of no options.
func Default() *Redactor {
	r, err := New(Options{})
	if err != nil { // unreachable: there is nothing to be wrong
		panic(err)
	}
	return r
}

// maxKey is the longest name that can be hidden, in bytes.
const maxKey = 64

func (r *Redactor) key(key string) error {
	name := normal(strings.TrimLeft(key, "+-"))
	switch {
	case name == "" || len(key) > maxKey:
		return &Error{key, fmt.Sprintf("is not the name of a key, as +pan or -token, of at most %d bytes", maxKey)}
	case strings.HasPrefix(key, "-") && !r.keys[name]:
		return &Error{key, "takes out a name that is not hidden"}
	}
	if strings.HasPrefix(key, "-") {
		delete(r.keys, name)
	} else {
		r.keys[name] = true
	}
	return nil
}

// normal is the form in which names are compared.
func normal(key string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(key))
}

// hides reports whether values under this name are hidden.
func (r *Redactor) hides(name []byte) bool {
	var short [maxKey]byte
	n := 0
	for _, c := range name {
		switch {
		case c == '-' || c == '_' || c == ' ':
			continue
		case n == maxKey:
			return false
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c >= 0x80:
			return r.keys[normal(string(name))]
		}
		short[n] = c
		n++
	}
	return r.keys[string(short[:n])]
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
	return &Redactor{keys: r.keys, paths: slices.Concat(r.paths, more)}
}

// Under returns a redactor that looks for the paths below a member of the
// document, as for a payload in its envelope.
func (r *Redactor) Under(member string) *Redactor {
	all := slices.Clone(r.paths)
	for i, p := range all {
		all[i] = append(path{{name: member}}, p...)
	}
	return &Redactor{keys: r.keys, paths: all, types: r.types}
}

// ByKey returns a redactor without paths.
func (r *Redactor) ByKey() *Redactor { return &Redactor{keys: r.keys} }
