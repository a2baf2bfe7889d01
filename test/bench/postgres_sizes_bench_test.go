package bench_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

// logged works off jobs, and reports how many bytes the server writes into its log (WAL) for each of them,
// from when it is enqueued until it has ended. That is what goes to a replica and into an archive. "xraw" is
// the ratio to the plainest queue on the same server (see rawPostgres); "index" are the bytes of the search
// index, which only jobs that fail are in.
func logged(b *testing.B, empty func() string, jobs int, ending job.Ending) {
	b.Helper()

	dsn := empty()
	position := func() int64 {
		text := postgrestest.Query(b, dsn, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`)

		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatal(err)
		}

		return n
	}
	each := func(do func()) float64 {
		before := position()
		do()

		return float64(position()-before) / float64(jobs)
	}

	ours, raw := newExchanging(b, postgres.Server{DSN: dsn}, ending), newRawPostgres(b, empty())
	index := func() {
		_, err := ours.store.Search.Update(b.Context())
		if err != nil {
			b.Fatal(err)
		}
	}

	// The first change of a page after a checkpoint writes all of it. What the jobs before have touched is left.
	ours.workOff(jobs)
	index()
	raw.workOff(jobs)

	for b.Loop() {
		bytes := each(func() { ours.workOff(jobs) })
		b.ReportMetric(bytes, "B/job")
		b.ReportMetric(each(index), "index-B/job")
		b.ReportMetric(bytes/each(func() { raw.workOff(jobs) }), "xraw")
	}
}

// takeover ends the process that works on a database, and reports how long it takes until the one that stands
// by is healthy: in seconds, the median, least and most of the rounds.
func takeover(b *testing.B, dsn string, how os.Signal) {
	const rounds = 7

	b.Helper()

	dir := b.TempDir()
	works := rig.Start(b, dir, "--db", dsn)

	for b.Loop() {
		var all []float64
		for range rounds {
			next, url := standby(b, dir, dsn)

			begin := time.Now()
			err := works.Cmd.Process.Signal(how)
			if err != nil {
				b.Fatal(err)
			}

			for !isHealthy(url) {
				time.Sleep(time.Millisecond)
			}

			all = append(all, time.Since(begin).Seconds())

			works.Wait()
			works = next
		}

		b.ReportMetric(median(all), "s") // which sorts them
		b.ReportMetric(all[0], "least-s")
		b.ReportMetric(all[rounds-1], "most-s")
	}
}

// listens finds in a log where a process answers.
var listens = regexp.MustCompile(`listen=(\S+)`)

// standby starts a process that stands by, and returns it with its address.
func standby(b *testing.B, dir, dsn string) (p *rig.Process, url string) {
	b.Helper()

	p = &rig.Process{T: b, Cmd: rig.Command(b, dir, "--listen", "127.0.0.1:0", "--db", dsn), Stderr: rig.NewTranscript()}
	p.Cmd.Stderr = p.Stderr

	err := p.Cmd.Start()
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() {
		if p.Cmd.ProcessState == nil {
			p.Stop(os.Kill)
		}
	})

	p.Says("Standing by")

	return p, "http://" + listens.FindStringSubmatch(p.Stderr.String())[1]
}

// isHealthy reports whether a process works.
func isHealthy(url string) bool {
	answer, err := http.Get(url + "/healthz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()

	said, err := io.ReadAll(answer.Body)

	return err == nil && string(said) == "ok\n"
}
