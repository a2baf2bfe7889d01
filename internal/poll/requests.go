package poll

import (
	"context"
	"errors"
	"slices"
	"time"

	"redrive/internal/pause"
	"redrive/internal/source"
)

// recoverBegun settles the requests that had begun when an earlier process ended, or when the
// connection broke. Where their records are now tells what has become of them. A request that was
// not carried out is made to wait again.
func (a *attached) recoverBegun(ctx context.Context) error {
	for !a.settled {
		acts, err := a.requests.Begun(ctx, a.Name, actsAtOnce)
		if err != nil {
			return err
		}

		if len(acts) == 0 {
			a.settled = true
			return nil
		}

		found, err := a.find(ctx, acts)
		if err != nil {
			return err
		}

		again, ended := outcomes(acts, found)

		err = a.settle(ctx, acts, ended)
		if err != nil {
			return err
		}

		err = a.requests.Reopen(ctx, again)
		if err != nil {
			return err
		}

		// The source cannot tell about some of them yet.
		if len(found) < len(acts) {
			a.soon = true
			return nil
		}
	}

	return nil
}

// outcomes decides, by where the records of requests were found, which requests were not carried
// out (again) and how the others ended.
func outcomes(acts []source.Act, found []source.Result) (again []int64, ended []source.Result) {
	for _, r := range found {
		i := slices.IndexFunc(acts, func(a source.Act) bool { return a.ID == r.ID })
		discards := acts[i].Kind == source.Discard

		switch {
		case r.State == source.Asked: // the record is unchanged: the request was not carried out
			again = append(again, r.ID)
			continue
		case discards && r.State == source.Done: // the job is running again, so its record was not removed
			r.State, r.Why = source.Gone, "It was replayed elsewhere and is under way again."
		case discards && r.State == source.Gone: // the record was removed
			r.State = source.Done
		case !discards && r.State == source.Changed: // the job was replayed, and has failed again
			r.State, r.Why = source.Done, ""
		case r.State == source.Gone:
			r.State, r.Why = source.Unknown, "the process ended while the source was told, and the record is no longer there"
		}

		ended = append(ended, r)
	}

	return again, ended
}

// find asks the source where the records of requests are.
func (a *attached) find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	return a.origin.Find(ctx, acts)
}

// carryOut sends the waiting requests to the source, and writes how they ended. Once a request was
// sent, its outcome is written even if ctx has ended.
func (a *attached) carryOut(ctx context.Context) error {
	for ctx.Err() == nil {
		waits, err := a.requests.Waiting(ctx, a.Name)
		if !waits || err != nil {
			return err
		}

		acts, err := a.requests.Take(ctx, a.Name, actsAtOnce)
		if err != nil || len(acts) == 0 {
			return err
		}

		// If anything fails from here on, recoverBegun looks up what became of the requests.
		earlier := a.settled
		a.settled = false

		results, err := a.send(ctx, acts)

		// Write down what has happened, even after an error.
		ended, notAttempted := partition(results)

		if len(notAttempted) > 0 {
			err = errors.Join(err, a.requests.Reopen(context.WithoutCancel(ctx), notAttempted))
		}

		settleErr := a.settle(context.WithoutCancel(ctx), acts, ended)

		if err != nil {
			return err
		}

		if settleErr != nil {
			return settleErr
		}

		a.settled = earlier

		// Do not repeat at once what the source did not attempt.
		if len(notAttempted) > 0 {
			a.soon = true
			return nil
		}
	}

	return nil
}

// send sends requests to the source. If ctx ends, the source has lateAnswer more to answer. The
// outcome of what it has not answered by then is looked up at the next start.
func (a *attached) send(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()

	stop := context.AfterFunc(ctx, func() {
		pause.For(sending, lateAnswer)
		cancel()
	})
	defer stop()

	return a.origin.Act(sending, acts)
}

// partition separates the results of requests that have ended from the ids of those that the
// source did not attempt.
func partition(results []source.Result) (ended []source.Result, notAttempted []int64) {
	for _, r := range results {
		if r.State == source.Asked {
			notAttempted = append(notAttempted, r.ID)
		} else {
			ended = append(ended, r)
		}
	}

	return ended, notAttempted
}

// settle writes how requests ended, and counts them.
func (a *attached) settle(ctx context.Context, acts []source.Act, results []source.Result) error {
	if len(results) == 0 {
		return nil
	}

	for i := range results {
		results[i].Why = a.keptText(results[i].Why, maxSentence)
	}

	err := a.store.SettleActs(ctx, time.Now(), results)
	if err != nil {
		return err
	}

	kinds := map[int64]source.Kind{}
	for _, act := range acts {
		kinds[act.ID] = act.Kind
	}

	a.tally.end(kinds, results)

	// Read a record soon that has changed since the request was made.
	for _, r := range results {
		a.soon = a.soon || r.State == source.Changed
	}

	return nil
}

// pollSuccesses asks the source which of the replayed jobs that it has back have succeeded, if it
// can tell. In each round, it asks about the newest page of them, which most likely have, and
// about one page of the others in turn.
func (a *attached) pollSuccesses(ctx context.Context) error {
	a.mu.Lock()
	tells := a.health.Report.Tells
	a.mu.Unlock()

	if !tells {
		return nil
	}

	// The newest page.
	last, more, err := a.pollPage(ctx, source.ReplayedJob{})
	if err != nil || !more {
		a.polled = source.ReplayedJob{}
		return err
	}

	// The next page of the others.
	if a.polled.Seq == 0 {
		a.polled = last
	}

	a.polled, more, err = a.pollPage(ctx, a.polled)
	if !more {
		a.polled = source.ReplayedJob{}
	}

	return err
}

// pollPage asks the source about the page of jobs that follows before, and has those completed
// that have succeeded. It returns the last job of the page, and whether there may be more.
func (a *attached) pollPage(ctx context.Context, before source.ReplayedJob) (last source.ReplayedJob, more bool, err error) {
	returned, err := a.requests.Returned(ctx, a.Name, before, pageSize)
	if err != nil || len(returned) == 0 {
		return last, false, err
	}

	last, more = returned[len(returned)-1], len(returned) == pageSize

	succeeded, err := a.askSuccesses(ctx, returned)
	if err != nil || len(succeeded) == 0 {
		return last, more, err
	}

	n, err := a.store.Succeeded(ctx, time.Now(), a.Name, succeeded)
	a.tally.succeed(n)

	return last, more, err
}

// askSuccesses asks the source which of these jobs have succeeded.
func (a *attached) askSuccesses(ctx context.Context, returned []source.ReplayedJob) ([]source.Success, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	return a.origin.Succeeded(ctx, returned)
}
