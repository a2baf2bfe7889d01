package store

import (
	"errors"
	"testing"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
	"redrive/internal/store/sqlite"
)

// A policy that a transaction stored and read is not known once that transaction
// was rolled back: jobs would name a row that is not there, or another policy.
func TestPolicies_OfATransactionThatFailedAreStoredAgain(t *testing.T) {
	s := open(t, Options{})
	path := pathOf(t, s)
	j := testJob("1")
	j.Policy.MaxAttempts, j.Key = 7, "once"
	fault := errors.New("fault")
	err := s.writer.Do(t.Context(), 1, func(tx *db.Tx) error {
		r := s.request(testTime, []job.Job{j})
		if err := s.enqueue(tx, r, 0, &r.jobs[0].Job); err != nil {
			return err
		}
		read, err := rows.One(s.policies.Whole(tx, rows.Whole+` WHERE seq = $1`, r.jobs[0].Job.Seq))
		if err != nil || read.Policy.MaxAttempts != 7 {
			t.Errorf("the job was read as %+v, %v", read, err)
		}
		return fault
	})
	if !errors.Is(err, fault) {
		t.Fatal(err)
	}
	other := testJob("2")
	other.Policy.MaxAttempts = 3
	_, err = s.Enqueue(t.Context(), testTime, []job.Job{other})
	check(t, err)
	done, err := s.Enqueue(t.Context(), testTime, []job.Job{j})
	check(t, err)
	check(t, s.Close())
	s = open(t, Options{Database: sqlite.File{Path: path}})
	found, err := s.Job(t.Context(), done[0].Job.ID)
	if err != nil || found.Job.Policy.MaxAttempts != 7 {
		t.Errorf("the job has %d attempts, want 7; %v", found.Job.Policy.MaxAttempts, err)
	}
}
