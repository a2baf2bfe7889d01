package core

import (
	"redrive/internal/job"
	"redrive/internal/store/db"
)

// deadLetters are the new dead letters of a transaction, which are written many at a time.
type deadLetters struct {
	waiting []deadLetter
	insert  db.Batch
}

// deadLetter is a new dead letter that is not written yet.
type deadLetter struct {
	seq int64 // the number of its job
	job.DeadLetter
}

func newDeadLetters() *deadLetters {
	return &deadLetters{insert: db.NewBatch(14, `INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception,
		failed_at, queue, attempts, error, cause, forwarded_at, forwarded_to, problem) VALUES `, "")}
}

// reset drops all rows that are not written, so that another transaction can begin.
func (d *deadLetters) reset() {
	d.forget()
	d.insert.Reset()
}

// forget empties the list of dead letters, and releases their texts.
func (d *deadLetters) forget() {
	clear(d.waiting)
	d.waiting = d.waiting[:0]
}

// flush writes the dead letters that wait.
func (d *deadLetters) flush(t *db.Tx) error {
	for i := range d.waiting {
		l := &d.waiting[i]

		err := d.insert.Add(t, l.seq, l.Run, 0, l.Refused, string(l.Reason), l.Exception, db.Micros(l.FailedAt), l.Queue, l.Attempts,
			l.Error, string(l.Cause), db.Micros(l.ForwardedAt), l.ForwardedTo, l.Problem)
		if err != nil {
			return db.Wrap(err, "store dead letters")
		}
	}

	d.forget()

	return db.Wrap(d.insert.Flush(t), "store dead letters")
}

// AddDeadLetter stores the dead letter of the job with the number seq. The row may be written
// later in the transaction, but before any other statement.
func (c *Core) AddDeadLetter(t *db.Tx, seq int64, l job.DeadLetter) error {
	d := c.in(t).deadLetters

	d.waiting = append(d.waiting, deadLetter{seq, l})
	if len(d.waiting) < atOnce {
		c.later(t)
		return nil
	}

	return c.writeWaiting(t)
}
