package postgres

import (
	"database/sql"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
)

// A list of VALUES becomes one array for each of its columns.
func TestList_IsSentByColumns(t *testing.T) {
	for query, want := range map[string]string{
		`INSERT INTO t (a, b) VALUES (?, ?), (?, ?) ON CONFLICT (a) DO UPDATE SET b = excluded.b`: `INSERT INTO t (a, b) ` +
			`SELECT unnest($1) AS column1, unnest($2) AS column2 ON CONFLICT (a) DO UPDATE SET b = excluded.b`,
		`UPDATE t SET b = s.column2 FROM (VALUES (?, ?), (?, ?)) AS s WHERE t.a = s.column1`: `UPDATE t SET b = s.column2 ` +
			`FROM (SELECT unnest($1) AS column1, unnest($2) AS column2) AS s WHERE t.a = s.column1`,
		`INSERT INTO t SELECT ?, l.column1 FROM (VALUES (?), (?)) AS l`: `INSERT INTO t SELECT $1, l.column1 ` +
			`FROM (SELECT unnest($2) AS column1) AS l`,
		`INSERT INTO t VALUES (?, 1), (?, 1)`:  ``, // not all are arguments
		`INSERT INTO t VALUES (?, ?), (?, 1)`:  ``,
		`INSERT INTO t VALUES ($1, $2)`:        ``,
		`UPDATE t SET a = ? WHERE b IN (?, ?)`: ``,
	} {
		if got := newList(query, 2).text; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, want)
		}
	}
}

// What travels in columns arrives as it was.
func TestList_KeepsValues(t *testing.T) {
	type named string

	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()
	rows := [][]any{
		{int64(math.MinInt64), 1, true, "", []byte{}, 0.1, nil},
		{int64(math.MaxInt64), -7, false, `{"ü", NULL, \x00}`, []byte{0, 255, '\\'}, math.Inf(1), "x"},
		{when, 0, true, named("NULL"), []byte(nil), -math.MaxFloat64, nil},
	}
	want := []string{
		"-9223372036854775808|1|1|||0.1|",
		`9223372036854775807|-7|0|{"ü", NULL, \x00}|00ff5c|Infinity|x`,
		fmt.Sprint(when, "|0|1|NULL|-|-1.7976931348623157e+308|"),
	}

	c := writerForTest(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() { check(c.Rollback(nil)) }()

	insert := db.NewBatch(7, `INSERT INTO kept (a, b, c, d, e, f, g) VALUES `, "")
	check(db.Transact(t.Context(), within{c}, func(tx *db.Tx) error {
		err := tx.Run(`CREATE TEMP TABLE kept (seq BIGINT GENERATED ALWAYS AS IDENTITY,
			a BIGINT, b BIGINT, c BIGINT, d TEXT, e BYTEA, f DOUBLE PRECISION, g TEXT)`)
		if err != nil {
			return err
		}

		for _, row := range rows {
			err := insert.Add(tx, row...)
			if err != nil {
				return err
			}
		}

		return insert.Flush(tx)
	}))

	if !c.wire.waiting[len(c.wire.waiting)-1].listed {
		t.Error("the rows do not travel in columns")
	}

	var got []string
	check(c.Query(`SELECT concat_ws('|', a, b, c, d, coalesce(encode(e, 'hex'), '-'), f, coalesce(g, '')) FROM kept ORDER BY seq`,
		func(row *sql.Rows) error {
			got = append(got, "")
			return row.Scan(&got[len(got)-1])
		}))
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// Columns of several types, or of none, travel as VALUES.
func TestList_OfSeveralTypesTravelsAsValues(t *testing.T) {
	c := &conn{texts: map[string]string{}, lists: map[string]list{}}
	for _, args := range [][]any{{int64(1), "x"}, {nil, nil}, {1.5, int64(1)}} {
		_, ok := c.inColumns(db.Statement{Query: `INSERT INTO t (a) VALUES (?), (?)`, Rows: 2, Args: args})
		if ok {
			t.Errorf("%v travel in a column", args)
		}
	}
}

// An exchange of another number of jobs needs no statement that an earlier one had not.
func TestExchange_PreparesNothingForAnotherNumberOfJobs(t *testing.T) {
	w := &watched{Server: Server{DSN: EmptyForTest(t)}}
	s, err := store.Open(t.Context(), store.Options{Database: w})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	now := time.Now().UTC().Truncate(time.Microsecond)
	once := retry.Default()
	once.MaxAttempts = 1
	exchange := func(n int) {
		t.Helper()

		jobs := make([]job.Job, n)
		for i := range jobs {
			jobs[i] = job.Job{Queue: "orders", Type: "email.send", Policy: once, Timeout: time.Minute, Payload: []byte("1")}
		}
		if _, err := s.Enqueue(t.Context(), now, jobs); err != nil {
			t.Fatal(err)
		}

		claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Worker: "w", Now: now, Lease: time.Minute, Free: map[string]int{"orders": n}})
		if err != nil || len(claimed) != n {
			t.Fatalf("%d jobs were claimed: %v", len(claimed), err)
		}

		var settle []job.Settlement
		for i, j := range claimed {
			end := job.Ending{Outcome: job.Failed, FinishedAt: now, Error: job.ErrorInfo{Message: "the mail server is down"}}
			if i%2 == 0 {
				end = job.Ending{Outcome: job.Succeeded, FinishedAt: now}
			}

			settle = append(settle, j.Settle(end, nil))
		}
		if _, _, err := s.Exchange(t.Context(), settle, job.Claim{Now: now}); err != nil {
			t.Fatal(err)
		}
	}

	for range 3 {
		exchange(150)
	}

	before := w.writer.wire.named
	for n := range 10 {
		exchange(20 + n)
	}

	if more := w.writer.wire.named - before; more > 0 {
		t.Errorf("%d statements were prepared", more)
	}
}

// writerForTest is the connection that writes jobs.
func writerForTest(t *testing.T) *conn {
	t.Helper()

	e, err := Server{DSN: EmptyForTest(t)}.Open(t.Context(), health.New(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}

	c, err := e.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = c.Close()
		_ = e.Close()
	})

	return c.(*conn)
}

// within is a connection whose transaction is begun and ended elsewhere.
type within struct{ *conn }

func (within) Commit() error { return nil }
