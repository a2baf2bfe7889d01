// Package source holds the nouns of sources: queues that other programs own, whose
// dead letters Redrive shows, replays and discards.
//
// A source is mirrored, not browsed. Its dead letters become jobs of Redrive's own, so
// that lists, groups, filters, search, exports and operations work on them as on all
// others. The truth stays at the source: before each act it is asked, in the unit in
// which it changes its own data, and it acts only if the record is still exactly what
// the person saw.
//
//	scan    the dead records at the source are read, page by page
//	mirror  a new record becomes a job in the dead-letter queue; one that is no longer
//	        there is a job that is gone; one that was replayed and is there again
//	        is a run that failed again
//	ask     a person, or an operation, asks for a replay or a discard: a row of the
//	        ledger, in the transaction that moves the job
//	act     the ledger's rows are taken, noted as begun, carried out at the source, and
//	        settled with what it answered
//	settle  what had begun when the process ended is looked up at the source, and never
//	        carried out again without an answer
//	learn   where the system keeps what has succeeded, it is asked for the jobs that were
//	        replayed
//
// The job of a record is in a queue that no other job can be in: the record's queue, an
// at sign and the name of the source, as in "orders@shop". No worker of Redrive claims
// from it.
//
// The package does no input or output. A family (packages sqlsource, redissource
// and amqpsource) speaks with the systems of its kind, and a preset (package preset) says where one
// system keeps what.
package source

import (
	"context"
	"regexp"

	"redrive/internal/clip"
	"redrive/internal/invalid"
)

// Page is a part of the dead records at a source. Reading a page says little more than
// which records are there and whether they have changed: most of them are known.
type Page struct {
	Records []Record
	Refused []Refusal     // records of this part that are not among the others
	Next    string        // where the next part begins; empty after the last one
	Read    func(*Record) // reads the rest of a record, whose mark stays the same; nil if nothing is missing
}

// Complete reads the rest of records of the page.
func (p Page) Complete(records []Record) {
	if p.Read == nil {
		return
	}

	for i := range records {
		p.Read(&records[i])
	}
}

// Origin is an attached system. Its methods may be called by one goroutine at a time,
// and end with their contexts. An error means that nothing is known: an act may have
// happened, and is looked up with Find.
type Origin interface {
	// Check looks whether the system is the one that the preset describes, and what it
	// allows.
	Check(ctx context.Context) (Report, error)
	// Scan reads the records after a place, which is empty or came with the page before,
	// the newest first where the system knows an order.
	Scan(ctx context.Context, after string, limit int) (Page, error)
	// Act does to the records what the acts say, each alone: a result for each act. One can
	// be Asked: then the source was not told, because there was an error, or because it
	// cannot tell yet whether the record has left.
	Act(ctx context.Context, acts []Act) ([]Result, error)
	// Find says for each act whether its record is still there as it was: then the
	// result is Asked, or Unknown where an unchanged record does not show whether an act
	// that had begun took place. Gone and Changed say that the record is not there or is
	// another one, and Done that the source can tell that the job is under way again. An
	// act has no result if the source cannot tell yet, but will after some time.
	Find(ctx context.Context, acts []Act) ([]Result, error)
	// Succeeded says which of these jobs the system keeps as ones that have succeeded. It is
	// called only if the report of the check says that the system tells.
	Succeeded(ctx context.Context, returned []ReplayedJob) ([]Success, error)
	Close() error
}

// MaxName is how long the name of a source may be.
const MaxName = 32

var name = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// CheckName returns a *invalid.Error unless s can name a source.
func CheckName(s string) error {
	if len(s) > MaxName || !name.MatchString(s) {
		return invalid.Errorf("name", "%q is not a source name: use lower-case letters, digits and dashes, at most %d", clip.Text(s, 64), MaxName)
	}
	return nil
}
