package groups

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

const (
	shownJobs    = 25       // how many jobs the page of a group shows
	wholePayload = 16 << 10 // up to this size, in bytes, a payload is shown whole
)

// Get returns everything that is known of an error group, as of one commit. If there is no such
// group, the error is job.ErrNotFound. It gives up with context.DeadlineExceeded after
// db.Patience.
func (p *Projection) Get(ctx context.Context, now time.Time, fingerprint string) (d failures.Detail, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	err = p.reader.Consistently(ctx, func(src db.Source) error {
		d.Group, err = One(src, `fingerprint = $1`, fingerprint)
		if err != nil {
			return err
		}

		// addParts fills in the groups of a list in place: here a list of one.
		groups := []failures.Group{d.Group}
		if err := addParts(src, now, groups); err != nil {
			return err
		}

		d.Group = groups[0]

		d.Hours, err = groupHours(src, d.Number, firstHour(now))
		if err != nil {
			return err
		}

		d.Sample, err = p.sample(src, d.Number)
		if err != nil {
			return err
		}

		d.Jobs, err = p.jobs(src, d.Number)

		return err
	})

	return d, db.TimedOut(ctx, err)
}

// One returns the group for which a condition on a column holds, such as `id = $1` with the
// number as its value. The condition becomes part of the query, so it must not come from a user.
// If there is no such group, the error is job.ErrNotFound.
func One(src db.Source, condition string, value any) (g failures.Group, err error) {
	found, err := db.Row(src, `SELECT `+groupColumns+` FROM groups AS g WHERE g.`+condition, groupFields(&g), value)
	if err == nil && !found {
		err = fmt.Errorf("error group %s: %w", clip.Text(fmt.Sprint(value), 64), job.ErrNotFound)
	}

	return g, err
}

// groupHours returns the failures of a group in each of the 24 hours that begin with the hour
// first, including the hours without any.
func groupHours(src db.Source, number, first int64) ([]failures.Hour, error) {
	const query = `SELECT hour, failures, final FROM group_hours WHERE group_id = $1 AND hour >= $2`

	hours := make([]failures.Hour, lastDay)
	for i := range hours {
		hours[i].At = db.FromMicros((first + int64(i)) * db.MicrosPerHour)
	}

	type count struct{ hour, failures, final int64 }
	counts, err := db.All(src, query, func(c *count) []any { return []any{&c.hour, &c.failures, &c.final} }, number, first)
	for _, c := range counts {
		// There can be failures of later hours, from before the clock was set back.
		if i := c.hour - first; i < lastDay {
			hours[i].Failures, hours[i].Final = c.failures, c.final
		}
	}

	return hours, err
}

// sample returns the newest failure of a group, as an example of the group: the job, and its
// attempt. The sample is zero if the job was removed, and has no attempt if that was.
func (p *Projection) sample(src db.Source, number int64) (found failures.Sample, err error) {
	const newest = `SELECT sample_seq, sample_execution FROM groups WHERE id = $1`
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq = $1`

	var seq int64
	var execution int
	if _, err := db.Row(src, newest, []any{&seq, &execution}, number); err != nil {
		return found, err
	}

	jobs, err := p.policies.Jobs(src, query, seq)
	if err != nil || len(jobs) == 0 {
		return found, err
	}

	found.Job = jobs[0]

	// AttemptFrom finds a later attempt if this one was removed.
	a, err := rows.AttemptFrom(src, seq, execution)
	if a != nil && a.Execution == execution {
		found.Attempt = *a
	}

	return found, err
}

// jobs returns the newest jobs of a group that are dead or will be retried, with their payloads.
// Of a payload that is larger than wholePayload, it returns the beginning.
func (p *Projection) jobs(src db.Source, number int64) ([]job.Job, error) {
	const query = `SELECT ` + rows.Columns + `, CASE WHEN length(payload) <= $3 THEN payload ELSE substr(payload, 1, 2048) END FROM jobs
		JOIN bodies ON job_seq = seq WHERE group_id = $1 AND group_id <> 0 AND list_state = $2
			AND letter <> 'trashed' ORDER BY changed_at DESC, seq DESC LIMIT $4 + 0`
	var found rows.Found
	for _, state := range []job.State{job.Discarded, job.Retryable} {
		err := src.Query(query, func(row *sql.Rows) error {
			var payload []byte

			err := found.Scan(row, &payload)
			if err == nil {
				found.Jobs[len(found.Jobs)-1].Payload = payload
			}

			return err
		}, number, string(state), wholePayload, shownJobs)
		if err != nil {
			return nil, err
		}
	}

	// Up to shownJobs of each state were found; the newest of both are shown.
	jobs, err := p.policies.Complete(src, found, nil)
	slices.SortStableFunc(jobs, func(a, b job.Job) int {
		return cmp.Or(b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(b.Seq, a.Seq))
	})

	return jobs[:min(len(jobs), shownJobs)], err
}
