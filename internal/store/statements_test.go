package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"redrive/internal/filter"
)

// A query of a snapshot that has to be prepared again does not wait for a
// connection held by another snapshot that waits for the same.
func TestReader_SnapshotsDoNotWaitForEachOther(t *testing.T) {
	s := open(t, Options{Statements: 1})
	id := enqueue(t, s, 1)[0].Job.ID
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 10 {
				if d, err := s.Job(ctx, id); err != nil || d.Job.ID != id {
					t.Errorf("job %s: %v", d.Job.ID, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Filters of more shapes than are kept prepared find what they should, also when
// many callers push each other's out.
func TestReader_ShapesOfFiltersPushEachOtherOut(t *testing.T) {
	s := open(t, Options{Statements: 4})
	enqueue(t, s, 3)
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			for shape := range 64 {
				f := filter.Filter{}
				for bit, add := range []func(){
					func() { f.Queue = "orders" }, func() { f.Type = "email.*" }, func() { f.Attempts.Max = 9 },
					func() { f.Run.Min = 1 }, func() { f.From = testTime.Add(-time.Hour) }, func() { f.Status = "available" },
				} {
					if (shape^caller)&(1<<bit) != 0 {
						add()
					}
				}
				if found, err := s.Jobs(t.Context(), f, filter.Cursor{}, 10); err != nil || len(found.Jobs) != 3 {
					t.Errorf("%s finds %d jobs, %v; want 3", fmt.Sprintf("%+v", f), len(found.Jobs), err)
				}
			}
		})
	}
	all.Wait()
}
