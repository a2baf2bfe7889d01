// Package audit holds the nouns of the audit log: who did what to what, and
// when. The store chains the entries by their hashes.
package audit

import "time"

// Actor is a person or a program that changes something.
type Actor struct {
	Name    string // as histories show it: "ana"; without a login "dashboard at 127.0.0.1"
	Address string // from where, empty when not known
	Open    bool   // may act only because nobody has to log in yet
}

// Entry is one line of the audit log, written in the transaction of the change
// that it records.
type Entry struct {
	Seq     int64 // 1 for the first
	At      time.Time
	Actor   Actor
	Action  string // stable code, as "job.replay" or "queue.pause"
	Subject string // what it was done to: a job's id, a queue, an operation, a user
	Filter  string // of an act on many jobs, as [Filter.String] writes it
	Count   int64  // how many it changed
	Before  string // what it was before, in a few words or as JSON; redacted
	After   string
	Hash    []byte // SHA-256 over the hash of the entry before and this one
}

// Name is how texts name the actor of an act that has a name or none.
func Name(by string) string {
	if by == "" {
		return "somebody"
	}
	return by
}
