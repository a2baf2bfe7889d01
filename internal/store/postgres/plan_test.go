package postgres_test

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/store/postgres/postgrestest"
)

// filled fills the tables that grow.
//
//go:embed testdata/filled.sql
var filled string

// filledAt is the time of the newest job in there.
var filledAt = time.UnixMicro(1772600767000000).UTC()

// almostAll is how old the oldest jobs of a large database are.
const almostAll = 27 * 24 * time.Hour

// Every list that has an index is read in its order, and so is what happens in the background, in
// a large database: before the server has counted what is in there, and after.
func TestPlans_OfListsFollowIndexes(t *testing.T) {
	dsn := postgrestest.New(t)
	sql(t, dsn, filled)

	r := recorderTo(t, dsn)
	s := mustOpen(t, r.dsn)

	for _, f := range indexedLists() {
		page, err := s.Jobs(t.Context(), f, filter.Cursor{}, 50)
		check(t, err)

		if page.Next != (filter.Cursor{}) {
			_, err = s.Jobs(t.Context(), f, page.Next, 50)
			check(t, err)
		}

		if f.Status == job.StatusDeadLetter {
			_, err = s.DeadLetters(t.Context(), f, filter.Cursor{}, 50)
			check(t, err)
		}
	}

	_, err := s.Counters.Queues(t.Context(), filledAt, s.QueueNames())
	check(t, err)
	_, err = s.Leases(t.Context(), filledAt)
	check(t, err)
	_, err = s.NextDue(t.Context(), filledAt)
	check(t, err)
	_, err = s.Sweep.Forecast(t.Context(), filledAt, retention.Limits{
		Ages: retention.Ages{
			retention.Completed: almostAll, retention.Cancelled: almostAll, retention.Discarded: almostAll, retention.DeadLetters: almostAll,
		}, Count: 5000, Trash: almostAll,
	})
	check(t, err)
	_, err = s.Groups.Top(t.Context(), filledAt, 5)
	check(t, err)
	_, err = s.Groups.RollUp(t.Context(), filledAt, failures.Filter{State: failures.Open}, 50)
	check(t, err)
	check(t, s.Close())

	looksAtPlans(t, dsn, r.asked())
}

// indexedLists are the lists that have an index.
func indexedLists() (all []filter.Filter) {
	for _, status := range job.Statuses() {
		of := filter.Filter{Status: status}
		all = append(all, of)

		// Of failures, also those of a queue, a type, a reason, a source or a group.
		switch status {
		case job.StatusDeadLetter:
			of.Reason = "attempts_exhausted"
			all = append(all, of)
			of.Reason, of.Source = "", "shop"
			all = append(all, of)
			of.Source, of.Group = "", "c4ca4238a0b923820dcc509a6f75849b"
			all = append(all, of)
		case job.Status(job.Retryable), job.Status(job.Discarded):
		default:
			continue
		}

		of = filter.Filter{Status: status, Queue: "orders"}
		all = append(all, of)
		of.Queue, of.Type = "", "type.7"
		all = append(all, of)
	}

	return append(all, filter.Filter{}, filter.Filter{Status: job.StatusDeadLetter, Sort: filter.Oldest}, filter.Filter{Source: "shop"})
}

// askedFor are the statements that behaviours ask for, which run beside each other.
type askedFor struct {
	mu       sync.Mutex
	examples map[string]example
}

func (a *askedFor) add(r *recorder) {
	a.mu.Lock()
	defer a.mu.Unlock()

	maps.Copy(a.examples, r.asked())
}

// withoutLists are these statements without lists of jobs: what a person asks for need not have an
// index, and a search ends in time.
func (a *askedFor) withoutLists() map[string]example {
	a.mu.Lock()
	defer a.mu.Unlock()

	all := maps.Clone(a.examples)
	maps.DeleteFunc(all, func(text string, _ example) bool { return isList.MatchString(text) })

	return all
}

// isClaim finds the queries of claims.
var isClaim = regexp.MustCompile(`(?s)run_at - enqueued_at, .* WHERE queue = \$1 AND state = 'available'`)

// isList finds the lists of jobs.
var isList = regexp.MustCompile(`FROM (jobs AS j|search_texts AS x|\(SELECT queue AS name FROM depths)[^;]* LIMIT \$\d+ \+ 0`)

// exempt reports whether a statement may read a whole table.
func exempt(text string, counted bool) bool {
	// Completed jobs, which most jobs are, are found in the order of all. That they are most has to
	// be known.
	completed := strings.Contains(text, `FROM jobs AS j WHERE j.state = 'completed'`) ||
		strings.Contains(text, `state IN ('completed', 'returned') AND seq > 0 ORDER BY seq`)

	// So has how many items there are of each job.
	items := strings.Contains(text, `JOIN operation_items AS i ON i.job_seq = e.value`)
	if !counted && (completed || items) {
		return true
	}

	for _, part := range []string{
		`SELECT count(*) FROM trash JOIN`,            // counts what will be removed, which can be all of it
		`FROM (SELECT 1 FROM search_backlog`,         // counts up to a number
		`SELECT EXISTS (SELECT 1 FROM mirrored`,      // ends with the first row
		`SELECT seq FROM jobs WHERE queue = $1 AND`,  // a person removes a queue
		`WHERE state = 'active' ORDER BY started_at`, // at a start, all that run
		`SELECT NOT EXISTS (SELECT 1 FROM operation`, // ends with the first row
		`state = 'pending'`,                          // follow the place where an operation is
	} {
		if strings.Contains(text, part) {
			return true
		}
	}

	return false
}

// looksAtPlans lets the server plan statements on a database, before it knows how many rows there
// are, and after.
func looksAtPlans(t *testing.T, dsn string, asked map[string]example) {
	t.Helper()

	conn := connect(t, dsn)
	looked := 0
	for _, counted := range []bool{false, true} {
		if counted {
			sql(t, dsn, `VACUUM ANALYZE`)
		}

		for _, text := range slices.Sorted(maps.Keys(asked)) {
			if !readsTables(text) || exempt(text, counted) {
				continue
			}

			looked++
			p := planner{t, conn, text, asked[text]}
			for _, plan := range p.plans(counted) {
				for _, fault := range plan.faults() {
					t.Errorf("counted: %v: %s: %s\n%s", counted, fault, text, plan.text)
				}
			}
		}
	}

	if looked < 100 {
		t.Errorf("only %d statements were looked at", looked)
	}
}

// connect opens a connection that the test closes.
func connect(t *testing.T, dsn string) *pgconn.PgConn {
	t.Helper()

	conn, err := pgconn.Connect(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })

	return conn
}

// readsTables reports whether a statement looks for rows.
func readsTables(text string) bool {
	if strings.Contains(text, "FROM pg_") {
		return false
	}

	verb, _, _ := strings.Cut(strings.TrimSpace(text), " ")

	return slices.Contains([]string{"SELECT", "WITH", "INSERT"}, verb) && strings.Contains(text, "FROM") || verb == "UPDATE" || verb == "DELETE"
}

// planner asks for plans of a statement.
type planner struct {
	t    *testing.T
	conn *pgconn.PgConn
	text string
	example
}

// plans are those that the server uses: one for the arguments of the example and, from the sixth
// time on, one for any arguments, unless that costs more. A query is run, too, if asked for: its plan says how
// many rows were read in vain.
func (p planner) plans(run bool) (all []plan) {
	options := ""
	if run && strings.HasPrefix(p.text, "SELECT") {
		options = ", ANALYZE, TIMING off"
	}

	custom, ok := p.explain(func() (*pgconn.Result, error) {
		read := p.conn.ExecParams(p.t.Context(), "EXPLAIN (FORMAT JSON"+options+") "+p.text, p.args, p.types, p.formats, nil).Read()
		return read, read.Err
	})
	if !ok {
		return nil
	}

	if !p.hasManyKeys() {
		all = append(all, custom)
	}

	generic, ok := p.explain(p.generic)
	if ok && generic.Plan.Cost <= custom.Plan.Cost {
		all = append(all, generic)
	}

	return all
}

// hasManyKeys reports whether an example looks up so many rows that all of a table are read sooner.
func (p planner) hasManyKeys() bool {
	for i, arg := range p.args {
		// An array begins with three other numbers before that of its values.
		if slices.Contains(arrays, p.types[i]) && binary.BigEndian.Uint32(arg[12:]) > 50 {
			return true
		}
	}

	return false
}

// arrays are the types of arrays of bytes, texts, numbers and fractions.
var arrays = []uint32{1001, 1009, 1016, 1022}

// generic asks for the plan for any arguments.
func (p planner) generic() (*pgconn.Result, error) {
	_, err := p.conn.Prepare(p.t.Context(), "asked", p.text, p.types)
	if err != nil {
		return nil, err
	}

	arguments := ""
	if n := len(p.args); n > 0 {
		arguments = "(NULL" + strings.Repeat(", NULL", n-1) + ")"
	}

	all, err := p.conn.Exec(p.t.Context(), "SET LOCAL plan_cache_mode = force_generic_plan; EXPLAIN (FORMAT JSON) EXECUTE asked"+arguments).ReadAll()
	if err != nil {
		return nil, err
	}

	return all[len(all)-1], p.conn.Deallocate(p.t.Context(), "asked")
}

// explain asks in a transaction that leaves nothing behind.
func (p planner) explain(ask func() (*pgconn.Result, error)) (found plan, ok bool) {
	p.t.Helper()

	// A claim is in the order of an index, which its transaction sees to: the server would sort jobs
	// while few of them wait.
	begin := "BEGIN"
	if isClaim.MatchString(p.text) {
		begin += "; " + p.settings
	}

	_, err := p.conn.Exec(p.t.Context(), begin+"; SET LOCAL statement_timeout = '1min'").ReadAll()
	check(p.t, err)

	read, err := ask()
	_, end := p.conn.Exec(p.t.Context(), "ROLLBACK").ReadAll()
	if err := errors.Join(err, end); err != nil {
		p.t.Errorf("%s: %v", p.text, err)
		return plan{}, false
	}

	text := ""
	for _, row := range read.Rows {
		text += string(row[0]) + "\n"
	}

	var plans []plan
	check(p.t, json.Unmarshal([]byte(text), &plans))
	plans[0].text = text

	return plans[0], true
}

// plan is how the server runs a statement.
type plan struct {
	text string
	Plan node
}

// node is a step of a plan.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Cost     float64 `json:"Total Cost"`

	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`

	Plans []node `json:"Plans"`
}

// bounded are the tables that do not grow with the jobs: by a number in the configuration, to a
// day, or by what people do.
var bounded = strings.Fields(`groups group_queues operations minutes sessions policies
	queues counters depths reasons held revision users tokens audit_head redaction removals retention_notice
	retention_clock source_addresses labels removal_notice migration search_state leases nodes schema_version`)

// faults are what is wrong with a plan.
func (p plan) faults() (all []string) {
	p.Plan.walk(func(n node) {
		inVain := (n.Filtered + n.Rechecked) * n.Loops
		switch {
		case n.Relation == "" || slices.Contains(bounded, n.Relation):
		case n.Type == "Seq Scan":
			all = append(all, "all rows of "+n.Relation+" are read")
		case inVain > 500 && inVain > 10*n.Rows*n.Loops:
			all = append(all, fmt.Sprintf("%.0f rows of %s are read in vain, for %.0f", inVain, n.Relation, n.Rows*n.Loops))
		case n.Rows*n.Loops > 5000:
			all = append(all, fmt.Sprintf("%.0f rows of %s are read", n.Rows*n.Loops, n.Relation))
		}
	})

	return all
}

func (n node) walk(each func(n node)) {
	each(n)

	for _, below := range n.Plans {
		below.walk(each)
	}
}
