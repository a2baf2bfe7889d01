package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// LetterUsage tells how full the dead-letter queue is.
func (s *Store) LetterUsage(ctx context.Context, now time.Time) (retention.Usage, error) {
	const query = `SELECT failed_at FROM dead_letters WHERE open = 1 ORDER BY failed_at, job_seq LIMIT 1`
	firstHour := db.Micros(now)/db.MicrosPerHour - 23
	u := retention.Usage{Open: s.Snapshot().Depths[job.StatusDeadLetter], LastDay: s.Counters.OpenedSince(firstHour)}
	err := s.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var oldest int64
		err := rows.Scan(&oldest)
		u.Oldest = db.FromMicros(oldest)
		return err
	})
	return u, err
}

// pruneChunk is how many letters one transaction removes.
const pruneChunk = 500

// Prune removes dead letters that lie longer than the retention allows, then
// the oldest of those that are more than it allows, and discarded jobs that lie
// in the trash for longer and that no operation is about to bring back, each with
// its job and everything that is known of it; the items of operations that ended
// so long ago, whose counts stay; and error groups in which nothing failed for so
// long and to which no job belongs. The newest letter always stays. Other writers
// come in between.
func (s *Store) Prune(ctx context.Context, now time.Time, r retention.Limits) (done retention.Pruned, err error) {
	if r.Age > 0 {
		done.ByAge, err = s.repeatedly(ctx, func(t *db.Tx) (int, error) { return s.prune(t, now, now.Add(-r.Age), pruneChunk) })
	}
	if r.Age > 0 && err == nil {
		done.Items, err = s.repeatedly(ctx, func(t *db.Tx) (int, error) { return s.Operations.PruneItems(t, now.Add(-r.Age), pruneChunk) })
	}
	if r.Count > 0 && err == nil {
		done.ByCount, err = s.repeatedly(ctx, func(t *db.Tx) (int, error) { return s.prune(t, now, now, s.Counters.OpenLetters()-r.Count) })
	}
	if r.Trash > 0 && err == nil {
		done.Trash, err = s.purgeTrash(ctx, now, now.Add(-r.Trash))
	}
	if r.Age > 0 && err == nil { // last: what was removed above no longer belongs to any
		done.Groups, err = s.repeatedly(ctx, func(t *db.Tx) (int, error) { return s.Groups.Prune(t, now.Add(-r.Age), pruneChunk) })
	}
	return done, err
}

// repeatedly removes in one transaction after the other, until one finds less
// than it may remove.
func (s *Store) repeatedly(ctx context.Context, some func(*db.Tx) (int, error)) (total int, err error) {
	for {
		n, err := db.Write(ctx, s.writer, pruneChunk, some)
		if err != nil {
			return total, fmt.Errorf("prune what is kept for its time only: %w", err)
		}
		if total += n; n < pruneChunk {
			return total, nil
		}
	}
}

// prune removes the oldest letters that failed before a time, at most so many,
// and says in the audit log how many those were.
func (s *Store) prune(t *db.Tx, now, before time.Time, most int64) (int, error) {
	if most <= 0 {
		return 0, nil
	}
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (
		SELECT job_seq FROM dead_letters WHERE open = 1 AND failed_at < $1 AND job_seq <> (
			SELECT job_seq FROM dead_letters WHERE open = 1 ORDER BY failed_at DESC, job_seq DESC LIMIT 1)
		ORDER BY failed_at, job_seq LIMIT $2 + 0)`
	jobs, err := s.policies.Jobs(t, query, db.Micros(before), min(most, pruneChunk))
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	if err := s.remove(t, jobs); err != nil {
		return 0, err
	}
	return len(jobs), s.Accounts.Log(t, audit.Entry{At: now, Actor: retentionActor(), Action: "dead_letters.prune", Count: int64(len(jobs))})
}

// remove deletes jobs that are over, with everything that is known of them.
func (s *Store) remove(t *db.Tx, jobs []job.Job) error {
	these := rows.Seqs(jobs)
	for _, remove := range []string{
		`DELETE FROM dead_letters WHERE job_seq IN (SELECT value FROM json_each($1))`,
		`DELETE FROM attempts WHERE job_seq IN (SELECT value FROM json_each($1))`,
		`DELETE FROM earlier_runs WHERE job_seq IN (SELECT value FROM json_each($1))`,
		`DELETE FROM replays WHERE job_seq IN (SELECT value FROM json_each($1))`,
		`DELETE FROM bodies WHERE job_seq IN (SELECT value FROM json_each($1))`,
		`DELETE FROM trash WHERE job_seq IN (SELECT value FROM json_each($1))`,
		`DELETE FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`,
	} {
		if _, err := t.Exec(remove, these); err != nil {
			return err
		}
	}
	for i := range jobs {
		s.books.Moved(book.Move{From: &jobs[i]})
	}
	t.Touch()
	return s.books.Removed(t, these)
}

// Forwarded writes down what became of a refused dead letter that was sent once
// more: it is stored as any other letter, or its problem is a newer one. A run
// whose letter is not refused (any more) is a *job.Conflict.
func (s *Store) Forwarded(ctx context.Context, now time.Time, id string, run int, d job.Delivery, by audit.Actor) (job.Job, error) {
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.byID(t, id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run || from.Letter != job.LetterRefused {
			return job.Job{}, &job.Conflict{Job: from, Problem: fmt.Sprintf(
				"the dead letter of run %d is not refused; the job is %s in run %d", run, from.Status(), from.Run)}
		}
		if d.Problem != "" {
			const still = `UPDATE dead_letters SET problem = $3 WHERE job_seq = $1 AND run = $2`
			t.Touch()
			if err := t.ExecExactly(1, still, from.Seq, run, clip.Text(d.Problem, job.MaxNote)); err != nil {
				return job.Job{}, err
			}
			return from, s.Accounts.Log(t, about(from, from, "job.forward", now, by))
		}
		to, err := s.accepted(t, from, d)
		if err != nil {
			return job.Job{}, err
		}
		return to, s.Accounts.Log(t, about(from, to, "job.forward", now, by))
	})
}

// accepted moves a refused letter into the dead-letter queue. Its job failed when
// it failed: the list of letters and the scope of an operation both go by that.
func (s *Store) accepted(t *db.Tx, from job.Job, d job.Delivery) (job.Job, error) {
	const (
		letter = `UPDATE dead_letters SET open = 1, refused = 0, problem = '', forwarded_to = $3, forwarded_at = $4
			WHERE job_seq = $1 AND run = $2 AND refused = 1`
		update = `UPDATE jobs SET letter = 'stored' WHERE seq = $1`
	)
	if err := t.ExecExactly(1, letter, from.Seq, from.Run, d.ForwardedTo, db.Micros(d.ForwardedAt)); err != nil {
		return job.Job{}, err
	}
	to, err := s.change(t, from, update, from.Seq)
	if err != nil {
		return job.Job{}, fmt.Errorf("store the dead letter of job %s: %w", from.ID, err)
	}
	s.moved(&from, &to, job.Totals{})
	return to, nil
}

// Problems says why the dead letters of these jobs were refused, by the job's
// own number.
func (s *Store) Problems(ctx context.Context, jobs []job.Job) (map[int64]string, error) {
	const query = `SELECT l.job_seq, l.problem FROM dead_letters AS l JOIN jobs AS j ON j.seq = l.job_seq AND j.run = l.run
		WHERE l.job_seq IN (SELECT value FROM json_each($1)) AND l.refused = 1`
	all := map[int64]string{}
	err := s.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var seq int64
		var problem string
		err := rows.Scan(&seq, &problem)
		all[seq] = problem
		return err
	}, rows.Seqs(jobs))
	return all, err
}
