package sqlsource_test

import (
	"fmt"
	"slices"
	"testing"

	"redrive/internal/source"
)

// grants are the systems whose replay with fresh attempts can raise the limit of a job:
// how its job dies once more, with all of its attempts, and how many a worker may still make.
var grants = map[string]struct{ dies, left string }{
	"river": {"UPDATE river_job SET state = 'discarded', attempt = max_attempts, finalized_at = now() WHERE id = %s",
		"SELECT max_attempts - attempt AS left FROM river_job WHERE id = %s"},
	"oban": {"UPDATE oban_jobs SET state = 'discarded', attempt = max_attempts, discarded_at = now() WHERE id = %s",
		"SELECT max_attempts - attempt AS left FROM oban_jobs WHERE id = %s"},
	"pg-boss": { // what was started counts one more when it is fetched
		"UPDATE pgboss.job SET state = 'failed', retry_count = retry_limit, started_on = now(), completed_on = now() WHERE id = '%.36s'",
		"SELECT retry_limit - retry_count + CASE WHEN started_on IS NULL THEN 1 ELSE 0 END AS left FROM pgboss.job WHERE id = '%.36s'"},
	"graphile-worker": {"UPDATE graphile_worker._private_jobs SET attempts = max_attempts, run_at = now() WHERE id = %s",
		"SELECT max_attempts - attempts AS left FROM graphile_worker._private_jobs WHERE id = %s"},
}

// The limit is that of the first run, which the ledger knows, whatever was granted since.
func TestReplay_FreshGrantsTheSameNumberOfAttemptsEachTime(t *testing.T) {
	for _, s := range systems {
		grant, ok := grants[s.preset]
		if !ok {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			address := s.load(t)
			o := s.origin(t, address)
			first := s.fit(t, o)
			for i, mode := range []source.Mode{source.Fresh, source.Once, source.Fresh, source.Fresh} {
				r := recordOf(t, o, first.Key)
				r.Limit = first.Limit
				if got := act(t, o, source.Replay, mode, r); got.State != source.Done {
					t.Fatalf("%+v", got)
				}
				want := first.Limit
				if mode == source.Once {
					want = 1
				}
				got := rows(t, address, fmt.Sprintf(grant.left, first.Key))
				if !slices.Equal(got, []string{fmt.Sprintf("left=%d", want)}) {
					t.Errorf("replay %d, %s, of a job with %d attempts: %q", i+1, mode, first.Limit, got)
				}
				execute(t, address, fmt.Sprintf(grant.dies, first.Key))
			}
		})
	}
}

// GoodJob's own destroy deletes the executions of a job with it.
func TestDiscard_OfGoodJobDeletesTheExecutions(t *testing.T) {
	s := systemOf("good-job", "postgres")
	address := s.load(t)
	execute(t, address, `INSERT INTO good_job_executions (created_at, active_job_id) VALUES
		('2026-11-22 10:00:03', '11111111-0000-4000-8000-000000000001'), ('2026-11-22 10:00:03', '11111111-0000-4000-8000-000000000003')`)
	o := s.origin(t, address)
	for _, r := range scan(t, o, 10) {
		seen := r
		seen.VersionToken = other(r.VersionToken)
		if got := act(t, o, source.Discard, "", seen); got.State != source.Changed {
			t.Errorf("%+v", got)
		}
	}
	if left := rows(t, address, "SELECT id FROM good_job_executions"); len(left) != 3 {
		t.Errorf("discards of other records than these leave %d executions", len(left))
	}
	for _, r := range scan(t, o, 10) {
		if got := act(t, o, source.Discard, "", r); got.State != source.Done {
			t.Errorf("%+v", got)
		}
	}
	left := rows(t, address, "SELECT active_job_id FROM good_job_executions")
	if want := []string{"active_job_id=11111111-0000-4000-8000-000000000003"}; !slices.Equal(left, want) {
		t.Errorf("the executions are left of %q", left)
	}
}

// Active Job stores how often a job ran when it enqueues it: a job that failed at once has none.
func TestScan_OfSolidQueueCountsTheExecutionThatFailed(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			s := systemOf("solid-queue", engine)
			all := scan(t, s.origin(t, s.load(t)), 10)
			if len(all) != 2 || all[0].Attempts != 1 || all[1].Attempts != 3 {
				t.Errorf("%+v", all)
			}
		})
	}
}
