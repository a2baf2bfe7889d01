package store

import (
	"errors"
	"testing"

	"redrive/internal/fingerprint"
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
	text := rows.TextOf(j)
	fault := errors.New("fault")
	err := s.writer.Do(t.Context(), 1, func(tx *db.Tx) error {
		first := j
		fresh(&first, testTime)
		if _, err := s.enqueue(tx, &first, text, fingerprint.Cause{}); err != nil {
			return err
		}
		if repeat, ok, err := s.keyed(tx, &j); err != nil || !ok || repeat.Policy.MaxAttempts != 7 {
			t.Errorf("the repeat gave %+v, %t, %v", repeat, ok, err)
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
