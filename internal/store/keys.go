package store

import (
	"crypto/sha256"
	"database/sql"
	"errors"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// An idempotency key belongs to its caller: no caller gets or loses a job because
// another caller chose the same text. Under one key the same content is a repeat,
// and anything else is refused: to answer it with the first job would make the
// second one vanish.
//
// The id of a message belongs to no caller. An id alone makes no repeat: a second
// envelope that asks for something else is a job of its own, whichever caller chose
// its id.

// repeats are the jobs of a request that are answered with one that was there
// before.
type repeats struct {
	earlier map[int]job.Job // by the place of the job that repeats it
	beside  map[int]int     // the place of the first one, where that is in the request too
}

// none reports whether there are none.
func (r repeats) none() bool { return len(r.earlier)+len(r.beside) == 0 }

// is reports whether the job at a place is a repeat.
func (r repeats) is(i int) bool {
	_, earlier := r.earlier[i]
	_, beside := r.beside[i]
	return earlier || beside
}

// first is the job that answers for the one at a place; done are those before it.
func (r repeats) first(i int, done []job.Enqueued) (first job.Job, known bool) {
	if k, beside := r.beside[i]; beside {
		return done[k].Job, true
	}

	first, known = r.earlier[i]

	return first, known
}

// note adds what answers for the job at a place.
func (r *repeats) note(i int, first job.Job) {
	if r.earlier == nil {
		r.earlier = map[int]job.Job{}
	}

	r.earlier[i] = first
}

// noteBeside adds that the job at place k answers for the one at i.
func (r *repeats) noteBeside(i, k int) {
	if r.beside == nil {
		r.beside = map[int]int{}
	}

	r.beside[i] = k
}

// repeats finds the repeats in a request. It only reads, so that a refusal has
// written nothing.
func (s *Store) repeats(t *db.Tx, r *request) (found repeats, err error) {
	err = s.repeatedKeys(t, r.jobs, &found)
	if err == nil && r.messages != nil {
		err = s.repeatedMessages(t, r, &found)
	}

	return found, err
}

// named are the new jobs of a transaction that a later one in it can repeat.
type named struct {
	keys     map[callerKey]*job.Job
	messages map[message]*job.Job
}

func newNamed() *named {
	return &named{keys: map[callerKey]*job.Job{}, messages: map[message]*job.Job{}}
}

// callerKey names an idempotency key.
type callerKey struct{ caller, key string }

// repeatedKeys finds the jobs whose keys were used before.
func (s *Store) repeatedKeys(t *db.Tx, jobs []job.Enqueued, found *repeats) error {
	var places map[callerKey]int
	for i := range jobs {
		j := &jobs[i].Job
		if j.Key == "" {
			continue
		}

		if places == nil {
			places = map[callerKey]int{}
		}

		// A key that comes twice in the request: the first job answers for the other, if both
		// ask for the same.
		name := callerKey{j.Caller, j.Key}
		if k, again := places[name]; !again {
			places[name] = i
		} else if found.noteBeside(i, k); !sameContent(&jobs[k].Job, j) {
			return &job.KeyReused{}
		}
	}

	// A key may also have been used by an earlier transaction, or by another request in this
	// one.
	used, err := uses(t, places)
	if err != nil || len(used)+len(s.named.In(t).keys) == 0 {
		return err
	}

	for i := range jobs {
		if j := &jobs[i].Job; j.Key != "" && !found.is(i) {
			first, known, err := s.keyed(t, j, used)
			if err != nil {
				return err
			}

			if known {
				found.note(i, first)
			}
		}
	}

	return nil
}

// use is the first job with a key.
type use struct {
	seq     int64
	content string
}

// uses finds which of the keys were used by earlier transactions. A key that was
// stored before callers were recorded counts as every caller's.
func uses(t *db.Tx, places map[callerKey]int) (map[callerKey]use, error) {
	const query = `SELECT key, job_seq, content, 1 FROM job_keys WHERE key IN (SELECT value FROM json_each($1)) AND caller = $2
		UNION ALL SELECT key, job_seq, content, 0 FROM job_keys WHERE key IN (SELECT value FROM json_each($1)) AND caller IS NULL`

	byCaller := map[string][]string{}
	for name := range places {
		byCaller[name.caller] = append(byCaller[name.caller], name.key)
	}

	var used map[callerKey]use
	for caller, keys := range byCaller {
		err := t.Written().Query(query, func(row *sql.Rows) error {
			name, u, own := callerKey{caller: caller}, use{}, false
			err := row.Scan(&name.key, &u.seq, &u.content, &own)

			// The caller's own key takes precedence over one without a caller, whichever row
			// comes first.
			if _, known := used[name]; own || !known {
				if used == nil {
					used = map[callerKey]use{}
				}

				used[name] = u
			}

			return err
		}, db.Texts(keys), caller)
		if err != nil {
			return nil, err
		}
	}

	return used, nil
}

// keyed returns the job that the key of j names, if it names one already, and a
// *job.KeyReused when that is another one.
func (s *Store) keyed(t *db.Tx, j *job.Job, used map[callerKey]use) (first job.Job, known bool, err error) {
	name, same := callerKey{j.Caller, j.Key}, false
	if beside, now := s.named.In(t).keys[name]; now {
		first, same = *beside, sameContent(beside, j)
	} else {
		u, before := used[name]
		if !before {
			return first, false, nil
		}

		first, err = rows.One(s.policies.Whole(t, rows.Whole+` WHERE seq = $1`, u.seq))
		if err != nil {
			return first, false, err
		}

		// Where either of them has no content to compare, the jobs are compared.
		same = u.content == j.Content
		if u.content == "" || j.Content == "" {
			same, err = s.began(t, &first, j)
		}
	}

	if err == nil && !same {
		err = &job.KeyReused{First: first.ID}
	}

	return first, err == nil, err
}

// wasOnce is the condition that a job had this queue ($2), type ($3) and payload ($4) in an
// earlier run. A run has no payload of its own where the next run had the same body: it has
// that of the first run behind it that has one, or else that of the job.
const wasOnce = `EXISTS (SELECT 1 FROM earlier_runs AS e WHERE e.job_seq = jobs.seq AND e.queue = $2 AND e.type = $3
	AND coalesce((SELECT n.payload FROM earlier_runs AS n
		WHERE n.job_seq = e.job_seq AND n.run >= e.run AND n.payload IS NOT NULL ORDER BY n.run LIMIT 1), bodies.payload) = $4)`

// began reports whether a job began as another one is now: a replay may have
// given it another queue, type or payload since.
func (s *Store) began(t *db.Tx, first, j *job.Job) (bool, error) {
	const query = `SELECT ` + wasOnce + ` FROM jobs JOIN bodies ON job_seq = seq WHERE seq = $1`

	if sameContent(first, j) {
		return true, nil
	}

	return db.Value[bool](t, query, first.Seq, j.Queue, j.Type, j.Payload)
}

// sameContent reports whether two jobs ask for the same.
func sameContent(a, b *job.Job) bool {
	if a.Content != "" && b.Content != "" {
		return a.Content == b.Content
	}
	return a.Queue == b.Queue && a.Type == b.Type && string(a.Payload) == string(b.Payload)
}

// message names an envelope with what it asks for.
type message struct {
	queue, id, typ string
	payload        [sha256.Size]byte
}

func messageOf(j *job.Job) message {
	return message{j.Queue, j.MessageID, j.Type, sha256.Sum256(j.Payload)}
}

// isMessage reports whether a new job repeats an envelope with its id, or can be
// repeated by one. What comes as a dead letter was not understood.
func isMessage(j *job.Job) bool { return j.MessageID != "" && j.State != job.Discarded }

// repeatedMessages finds the jobs whose envelopes came before.
func (s *Store) repeatedMessages(t *db.Tx, r *request, found *repeats) error {
	known, err := knownMessages(t, r.messages)
	if err != nil {
		return err
	}

	places := map[message]int{}
	for i, m := range r.messages {
		if m.id == "" || found.is(i) {
			continue
		}

		// The request has the same envelope twice.
		if k, beside := places[m]; beside {
			found.noteBeside(i, k)
			continue
		}

		places[m] = i

		// Another request in this transaction may have had the envelope, or an earlier
		// transaction. A known id alone makes no repeat: its job may have asked for something
		// else, or have ended (sql.ErrNoRows).
		if first, now := s.named.In(t).messages[m]; now {
			found.note(i, *first)
		} else if known[m.id] {
			first, err := s.firstMessage(t, &r.jobs[i].Job)
			if err == nil {
				found.note(i, first)
			} else if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
	}

	return nil
}

// knownMessages tells which ids of messages earlier transactions know. Almost none
// are known, which costs less to find out for all at once.
func knownMessages(t *db.Tx, messages []message) (map[string]bool, error) {
	const query = `SELECT DISTINCT message_id, 1 FROM bodies
		WHERE message_id <> '' AND message_id IN (SELECT value FROM json_each($1))`

	var ids []string
	for _, m := range messages {
		if m.id != "" {
			ids = append(ids, m.id)
		}
	}

	return db.Map[string, bool](t.Written(), query, db.Texts(ids))
}

// firstMessage returns the job that answers for a repeated envelope, or
// sql.ErrNoRows.
func (s *Store) firstMessage(t *db.Tx, j *job.Job) (job.Job, error) {
	const query = rows.Whole + ` WHERE message_id = $1 AND message_id <> ''
		AND (queue = $2 AND type = $3 AND payload = $4 OR ` + wasOnce + `)
		AND state NOT IN ('completed', 'discarded', 'cancelled') ORDER BY seq LIMIT 1`
	return rows.One(s.policies.Whole(t, query, j.MessageID, j.Queue, j.Type, j.Payload)) // a replay may have changed it since
}
