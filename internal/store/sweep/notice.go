package sweep

import (
	"cmp"
	"context"
	"math"
	"time"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// The removal notice says which dead letters the newest forecast announced as too many: the
// oldest of Redrive's own, up to a place in the order of their failures. It is a row of the
// table removal_notice, and a pass removes only what it covers.
//
// A dead letter can come to a place before that later: when it is restored, accepted by its
// receiver or written down late, and when the operation ends that held it. The transaction in
// which that happens makes the notice end before such a dead letter.

// farthest is after every job.
var farthest = place{math.MaxInt64, math.MaxInt64}

// before reports whether a place comes before another one.
func (a place) before(b place) bool {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) < 0
}

// endNotice makes the notice end at a place, if it goes beyond it.
func endNotice(at place) func(*db.Tx) error {
	return db.Any(`UPDATE removal_notice SET last_at = $1, last_seq = $2 WHERE (last_at, last_seq) > ($1, $2)`, at.at, at.seq)
}

// beginNotice takes the notice back, because the dead letters are counted again: those that
// are too many, if any are. It goes before the counting: what is committed from then on may
// not be in the count, and is left out.
func (s *Sweeper) beginNotice(ctx context.Context, tooMany bool) error {
	begin := db.Exactly(1, `UPDATE removal_notice SET announced_at = 0, last_at = $1, last_seq = $2`, farthest.at, farthest.seq)
	if !tooMany {
		last, err := noticeOf(s.reader.In(ctx))
		if err != nil || last == (place{}) {
			return db.Wrap(err, "read the removal notice")
		}

		begin = endNotice(place{})
	}

	return db.Wrap(s.writer.Do(ctx, 1, begin), "take back the removal notice")
}

// giveNotice announces the dead letters up to a place.
func (s *Sweeper) giveNotice(ctx context.Context, now time.Time, last place) error {
	err := s.writer.Do(ctx, 1, func(t *db.Tx) error {
		return db.Steps(t, endNotice(last), db.Exactly(1, `UPDATE removal_notice SET announced_at = $1`, db.Micros(now)))
	})

	return db.Wrap(err, "write the removal notice")
}

// noticeOf is the place up to which dead letters were announced, before all others if none were.
func noticeOf(src db.Source) (last place, err error) {
	const query = `SELECT last_at, last_seq FROM removal_notice WHERE announced_at <> 0`

	_, err = db.Row(src, query, []any{&last.at, &last.seq})

	return last, err
}

// Moved notes the first dead letter of our own that comes with a transaction.
func (s *Sweeper) Moved(t *db.Tx, m projection.Move) {
	if !isOwnDeadLetter(m.To) || isOwnDeadLetter(m.From) {
		return
	}

	first := s.arrived.In(t)
	if at := (place{db.Micros(m.To.ChangedAt), m.To.Seq - 1}); at.before(*first) {
		*first = at
	}
}

// isOwnDeadLetter reports whether a job, which may be nil, is a dead letter that no source has.
func isOwnDeadLetter(j *job.Job) bool {
	return j != nil && j.Source == "" && j.DeadLetter == job.DeadLetterStored
}

// Flush makes the notice end before what came. An operation that ended can have held any dead
// letter.
func (s *Sweeper) Flush(t *db.Tx) error {
	end := *s.arrived.In(t)
	if s.operations.Ended(t) {
		end = place{}
	}

	if end == farthest {
		return nil
	}

	return db.Wrap(endNotice(end)(t), "end the removal notice")
}

// Committed has nothing to make known.
func (s *Sweeper) Committed(*db.Tx) {}
