package store

import (
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// An idempotency key belongs to its caller: nobody gets or loses a job because
// somebody else chose the same text. Under one key the same content is a repeat,
// and anything else is refused: to answer it with the first job would make the
// second one vanish.

// callerKey names an idempotency key.
type callerKey struct{ caller, key string }

// repeats finds the jobs that answer for those whose keys were used before, and
// which of the jobs repeat an earlier one beside them. It only reads, so that a
// refusal has written nothing.
func (s *Store) repeats(t *db.Tx, jobs []job.Job) (first map[int]job.Job, beside map[int]int, err error) {
	first, beside = map[int]job.Job{}, map[int]int{}
	seen := map[callerKey]int{}
	for i := range jobs {
		j := &jobs[i]
		if j.Key == "" {
			continue
		}
		if k, again := seen[callerKey{j.Caller, j.Key}]; again {
			if beside[i] = k; !sameContent(&jobs[k], j) {
				return nil, nil, &job.KeyReused{}
			}
			continue
		}
		seen[callerKey{j.Caller, j.Key}] = i
		found, ok, err := s.keyed(t, j)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			first[i] = found
		}
	}
	return first, beside, nil
}

// keyed returns the job that the key of j names, if it names one already, and a
// *job.KeyReused when that is another one. A key that is older than callers counts
// as everybody's.
func (s *Store) keyed(t *db.Tx, j *job.Job) (first job.Job, ok bool, err error) {
	const query = `SELECT job_seq, content FROM job_keys WHERE key = $1 AND (caller = $2 OR caller IS NULL)
		ORDER BY caller IS NULL LIMIT 1`
	if err := s.tx.flushJobs(t); err != nil { // it may be one of those that wait
		return first, false, err
	}
	var seq int64
	var content string
	if ok, err = db.Row(t, query, []any{&seq, &content}, j.Key, j.Caller); err != nil || !ok {
		return first, false, err
	}
	if first, err = rows.One(s.policies.Whole(t, rows.Whole+` WHERE seq = $1`, seq)); err != nil {
		return first, false, err
	}
	same := content == j.Content
	if content == "" || j.Content == "" {
		same, err = s.began(t, &first, j)
	}
	if err == nil && !same {
		err = &job.KeyReused{First: first.ID}
	}
	return first, err == nil, err
}

// began reports whether a job began as another one is now: a replay may have
// given it another queue, type or payload since.
func (s *Store) began(t *db.Tx, first, j *job.Job) (bool, error) {
	const query = `SELECT count(*) FROM earlier_runs WHERE job_seq = $1 AND queue = $2 AND type = $3 AND coalesce(payload, $4) = $5`
	if sameContent(first, j) {
		return true, nil
	}
	n, err := db.Value[int64](t, query, first.Seq, j.Queue, j.Type, first.Payload, j.Payload)
	return n > 0, err
}

// sameContent reports whether two jobs ask for the same.
func sameContent(a, b *job.Job) bool {
	if a.Content != "" && b.Content != "" {
		return a.Content == b.Content
	}
	return a.Queue == b.Queue && a.Type == b.Type && string(a.Payload) == string(b.Payload)
}
