package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

// How often the server is asked what keeps it from cleaning up, and how long that has to last
// until people are told. Only tests change them, before a database is opened.
var (
	LookEvery = 15 * time.Second
	Lasting   = time.Minute
)

// lookTakes is how long a look takes at most.
const lookTakes = 10 * time.Second

// watch looks for what keeps the server from removing dead rows: the oldest transaction that a
// session, a prepared transaction or a replica may still want to see.
type watch struct {
	reads  *sql.DB
	health *health.Health
	after  time.Duration // people are told

	seen    map[string]sighting // at the last look, by what is the same at each look
	failing bool                // the last look failed, which has been logged

	stop  context.CancelFunc
	ended sync.WaitGroup
}

// newWatch begins to look.
func newWatch(reads *sql.DB, health *health.Health) *watch {
	w := &watch{reads: reads, health: health, after: Lasting}

	ctx, stop := context.WithCancel(context.Background())
	tick := time.NewTicker(LookEvery)

	w.stop = stop
	w.ended.Go(func() {
		defer tick.Stop()
		w.run(ctx, tick.C)
	})

	return w
}

// close ends the looking.
func (w *watch) close() {
	if w == nil {
		return
	}

	w.stop()
	w.ended.Wait()
}

// run looks at once and at each tick, until the context ends.
func (w *watch) run(ctx context.Context, tick <-chan time.Time) {
	for {
		err := w.look(ctx)
		if ctx.Err() != nil {
			return
		}

		// Work does not depend on what is seen: an error is none of the database.
		if err != nil && !w.failing {
			w.health.Log().Warn("What keeps the server of the database from cleaning up cannot be read. Redrive tries again.", "error", err)
		}

		w.failing = err != nil

		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// look reads what is there now. What was known stays when that fails.
func (w *watch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTakes)
	defer cancel()

	var found []sighting
	for _, read := range []reader{sessions, slots, preparedTransactions} {
		some, err := read(ctx, w.reads, time.Now().UTC())
		if err != nil {
			return err
		}

		found = append(found, some...)
	}

	w.seen = follow(w.seen, found)
	w.health.Hindered(lastingSince(w.seen, time.Now().Add(-w.after)))

	return nil
}

// reader reads the hindrances of one kind.
type reader func(ctx context.Context, reads *sql.DB, now time.Time) ([]sighting, error)

// sighting is a hindrance as one look shows it.
type sighting struct {
	key string // the same at each look

	// The transaction that has to stay visible: its own, which it keeps until it ends, or the
	// oldest of its snapshot, which it may exchange for a newer one. Either may be empty.
	own, oldest string

	health.Hindrance // Since is as the server knows it, or the time of the look
}

// follow gives what was found the time since which it is known to be there: where an earlier look
// saw it with the same transaction, nothing has been cleaned up since.
func follow(before map[string]sighting, found []sighting) map[string]sighting {
	after := make(map[string]sighting, len(found))
	for _, s := range found {
		earlier, known := before[s.key]
		if known && s.holdsSame(earlier) {
			s.Since = earlier.Since
		}

		after[s.key] = s
	}

	return after
}

func (s sighting) holdsSame(as sighting) bool {
	return s.own != "" && s.own == as.own || s.oldest != "" && s.oldest == as.oldest
}

// lastingSince are those that have been there since a time or longer, the oldest first.
func lastingSince(seen map[string]sighting, since time.Time) []health.Hindrance {
	var all []health.Hindrance
	for _, s := range seen {
		if !s.Since.After(since) {
			all = append(all, s.Hindrance)
		}
	}

	slices.SortFunc(all, func(a, b health.Hindrance) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})

	return all
}

// sessions are those of this database, and those of replicas that have no slot. What vacuums is
// none: other cleaning up does not wait for it. The server hides what sessions of other roles
// hold from a role without pg_read_all_stats.
func sessions(ctx context.Context, reads *sql.DB, now time.Time) (all []sighting, err error) {
	const query = `
		SELECT concat_ws(' ', pid, backend_start, xact_start), coalesce(backend_xid::text, ''), coalesce(backend_xmin::text, ''),
			pid, datid IS NULL, coalesce(nullif(application_name, ''), backend_type), coalesce(usename, ''),
			coalesce(host(client_addr), ''), coalesce(state, ''),
			-- A replica moves its snapshot on without a new state.
			CASE WHEN datid IS NULL THEN 0
				ELSE coalesce(extract(epoch FROM clock_timestamp() - greatest(state_change, xact_start)), 0) END::float8
		FROM pg_stat_activity
		WHERE (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
			AND (datname = current_database() OR datid IS NULL AND backend_type = 'walsender')
			AND pid <> pg_backend_pid() AND leader_pid IS NULL
			AND backend_type <> 'autovacuum worker' AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)`

	err = db.Scan(reads.QueryContext(ctx, query))(func(rows *sql.Rows) error {
		var s sighting
		var who session
		var age float64

		err := rows.Scan(&s.key, &s.own, &s.oldest, &who.pid, &who.replica, &who.application, &who.user, &who.address, &who.state, &age)
		if err != nil {
			return err
		}

		s.key = health.BySession + " " + s.key
		s.Hindrance = who.hindrance()
		s.Since = ago(now, age)
		all = append(all, s)

		return nil
	})

	return all, db.Wrap(err, "read the sessions of the server")
}

// session is one as the server lists it.
type session struct {
	pid     int64
	replica bool // which is fed through it

	application string
	user        string
	address     string // empty: it comes from the server's own machine
	state       string
}

func (s session) hindrance() health.Hindrance {
	from := cmp.Or(s.address, "the server's own machine")
	if s.replica {
		return health.Hindrance{
			Kind:   health.BySession,
			Name:   fmt.Sprintf("The replica %s (user %s, from %s)", s.application, s.user, from),
			Remedy: "A query takes long on the replica: end it there, or set hot_standby_feedback to off there.",
		}
	}

	about := []string{"application " + s.application}
	for _, part := range []struct{ before, text string }{{"user ", s.user}, {"from ", from}, {"", s.state}} {
		if part.text != "" {
			about = append(about, part.before+part.text)
		}
	}

	return health.Hindrance{
		Kind:       health.BySession,
		Name:       fmt.Sprintf("Session %d (%s)", s.pid, strings.Join(about, ", ")),
		Remedy:     "If the session is not needed, end it:",
		Statements: []string{fmt.Sprintf("SELECT pg_terminate_backend(%d)", s.pid)},
	}
}

// slots are those whose replica still sees rows. The server does not say since when.
func slots(ctx context.Context, reads *sql.DB, now time.Time) (all []sighting, err error) {
	const query = `SELECT slot_name, xmin::text, active, quote_literal(slot_name) FROM pg_replication_slots WHERE xmin IS NOT NULL`

	err = db.Scan(reads.QueryContext(ctx, query))(func(rows *sql.Rows) error {
		var name, xmin, quoted string
		var active bool

		err := rows.Scan(&name, &xmin, &active, &quoted)
		if err != nil {
			return err
		}

		h := health.Hindrance{Kind: health.BySlot, Name: "The replication slot " + name + ", whose replica is connected,", Since: now}
		h.Remedy = "A query takes long on the replica: end it there, or set hot_standby_feedback to off there."
		if !active {
			h.Name = "The replication slot " + name + ", whose replica is not connected,"
			h.Remedy = "Let its replica connect and catch up, or drop the slot if there is none any more:"
			h.Statements = []string{"SELECT pg_drop_replication_slot(" + quoted + ")"}
		}

		all = append(all, sighting{key: health.BySlot + " " + name, oldest: xmin, Hindrance: h})

		return nil
	})

	return all, db.Wrap(err, "read the replication slots of the server")
}

// preparedTransactions are those of this database.
func preparedTransactions(ctx context.Context, reads *sql.DB, now time.Time) (all []sighting, err error) {
	const query = `SELECT gid, owner, transaction::text, quote_literal(gid), extract(epoch FROM clock_timestamp() - prepared)::float8
		FROM pg_prepared_xacts WHERE database = current_database()`

	err = db.Scan(reads.QueryContext(ctx, query))(func(rows *sql.Rows) error {
		var name, owner, transaction, quoted string
		var age float64

		err := rows.Scan(&name, &owner, &transaction, &quoted, &age)
		if err != nil {
			return err
		}

		h := health.Hindrance{
			Kind:       health.ByPrepared,
			Name:       fmt.Sprintf("The prepared transaction %s of the user %s", name, owner),
			Since:      ago(now, age),
			Remedy:     "The transaction waits for the program that prepared it. If that is gone, end it in this database, as this user:",
			Statements: []string{"COMMIT PREPARED " + quoted, "ROLLBACK PREPARED " + quoted},
		}
		all = append(all, sighting{key: health.ByPrepared + " " + name, own: transaction, Hindrance: h})

		return nil
	})

	return all, db.Wrap(err, "read the prepared transactions of the server")
}

// ago is the time so many seconds ago: the clock of the server may differ from that of this
// process.
func ago(now time.Time, seconds float64) time.Time {
	return now.Add(-time.Duration(seconds * float64(time.Second))).Truncate(time.Millisecond)
}
