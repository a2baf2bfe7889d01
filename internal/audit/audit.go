// Package audit holds the types of the audit log: who did what to what, and when.
// The store chains the entries by their hashes, so that a later change shows.
package audit

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/invalid"
	"redrive/internal/wire"
)

// Actor is a person or a program that changes something.
type Actor struct {
	Name    string // as histories show it: "ana"; without a login "local user (127.0.0.1)"
	Address string // from where, empty when not known
	Open    bool   // may act only because no login is required yet
}

// Entry is one line of the audit log, written in the transaction of the change
// that it records.
type Entry struct {
	Seq     int64 // 1 for the first
	At      time.Time
	Actor   Actor
	Action  string // stable code, such as "job.replay" or "queue.pause"
	Subject string // what it was done to: a job's id, a queue, an operation, a user
	Filter  string // of an act on many jobs, as [Filter.String] writes it
	Count   int64  // how many it changed
	Before  string // what it was before, in a few words or as JSON; redacted
	After   string
	Hash    []byte // SHA-256 over the hash of the entry before and this one
}

// Name is how texts call an actor, who may have no name.
func Name(by string) string {
	if by == "" {
		return "someone"
	}
	return by
}

// The actions that other packages ask for by name.
const (
	Reveal = "job.reveal" // a user viewed hidden values
	Export = "export"     // a user took a list away as a file

	ExportBegin = "export.begin" // a user began to take a long list away; its end is an entry of its own
)

// Guarded are the actions, as [Filter.Action] writes them, that only those see of others
// who may manage: reveals, logins, and the management of users and tokens.
func Guarded() []string {
	return []string{Reveal, "login", "login.*", "logout", "session.*", "user.*", "token.*"}
}

// WithoutAddresses is an entry for those who may not manage. The hash goes too: an
// address could be found by trying all that there are.
func (e Entry) WithoutAddresses() Entry {
	e.Actor.Address, e.Hash = "", nil
	if name, rest, ok := strings.Cut(e.Actor.Name, " ("); ok {
		if _, err := netip.ParseAddr(strings.TrimSuffix(rest, ")")); err == nil {
			e.Actor.Name = name
		}
	}

	return e
}

// Filter selects entries of the audit log. Empty fields select everything.
type Filter struct {
	Actor   string // exact
	Action  string // exact, or a prefix such as "job.*"
	Subject string // exact
	From    time.Time
	To      time.Time // until before
	Own     string    // of the entries about what is [Guarded], only those of this actor
}

// String writes what was asked for as the audit log keeps it.
func (f Filter) String() string {
	var all []string
	for _, part := range []struct{ name, value string }{
		{"actor", f.Actor}, {"action", f.Action}, {"subject", f.Subject}, {"from", wire.FormatTime(f.From)}, {"to", wire.FormatTime(f.To)},
	} {
		if part.value != "" {
			all = append(all, part.name+":"+part.value)
		}
	}

	return strings.Join(all, " ")
}

// maxText bounds what entries are looked for by, in bytes.
const maxText = 255

// Check returns a *invalid.Error for the first field that nothing can match.
func (f Filter) Check() error {
	for _, text := range []struct{ field, value string }{{"actor", f.Actor}, {"action", f.Action}, {"subject", f.Subject}} {
		if len(text.value) > maxText || !utf8.ValidString(text.value) {
			return invalid.Errorf(text.field, "must be valid UTF-8 of at most %d bytes", maxText)
		}
	}

	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return &invalid.Error{Field: "to", Problem: "is not after from"}
	}

	return nil
}

// List is one page of the audit log, newest first.
type List struct {
	Entries []Entry
	Next    int64 // the entry after which the next page begins; 0 on the last page
}

// Broken says where another program changed the audit log.
type Broken struct {
	Seq     int64 // the first entry that does not fit
	Problem string
}

func (e *Broken) Error() string {
	return fmt.Sprintf("entry %d of the audit log %s", e.Seq, e.Problem)
}
