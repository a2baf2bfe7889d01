package poll

import (
	"context"
	"errors"
	"slices"
	"time"

	"redrive/internal/pause"
	"redrive/internal/source"
)

// recoverBegun settles the acts that had begun when an earlier process ended, or when the
// connection broke: the source is asked where their records are.
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

		// What has happened is known by where the records are now.
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

		// Of some, the source cannot tell yet.
		if len(found) < len(acts) {
			a.soon = true
			return nil
		}
	}

	return nil
}

// outcomes says of acts that had begun, by where their records were found, which of them
// have not happened and how the others ended.
func outcomes(acts []source.Act, found []source.Result) (again []int64, ended []source.Result) {
	for _, r := range found {
		i := slices.IndexFunc(acts, func(a source.Act) bool { return a.ID == r.ID })
		discards := acts[i].Kind == source.Discard

		switch {
		case r.State == source.Asked: // it is there as it was: nothing has happened
			again = append(again, r.ID)
			continue
		case discards && r.State == source.Done: // the job is under way, so it was not removed
			r.State, r.Why = source.Gone, "It was replayed elsewhere and is under way again."
		case discards && r.State == source.Gone: // the record was removed
			r.State = source.Done
		case !discards && r.State == source.Changed: // the job ran, and died again
			r.State, r.Why = source.Done, ""
		case r.State == source.Gone:
			r.State, r.Why = source.Unknown, "the process ended while the source was told, and the record is no longer there"
		}

		ended = append(ended, r)
	}

	return again, ended
}

// find asks the source where the records of acts are.
func (a *attached) find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	return a.origin.Find(ctx, acts)
}

// carryOut carries out what people ask of the source. Once the source was told, its answer is
// written down also when the program is about to end.
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

		// These count as begun until the store knows how they ended, also if this ends in a panic.
		earlier := a.settled
		a.settled = false

		results, err := a.send(ctx, acts)
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

		if len(notAttempted) > 0 {
			a.soon = true
			return nil
		}
	}

	return nil
}

// send tells the source what to do. At the end of the program the source has a few seconds
// more to answer; what it has not answered by then is looked up at the next start.
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

// partition parts the results of acts that have ended from the acts that were not attempted:
// those wait to be taken again.
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

// settle writes down how acts ended, and counts them.
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

	// A record that has changed is to be read soon.
	for _, r := range results {
		a.soon = a.soon || r.State == source.Changed
	}

	return nil
}

// pollSuccesses asks the source which of the jobs that it has back have succeeded: those that
// it took last, and a page of the others, from where the last round ended.
func (a *attached) pollSuccesses(ctx context.Context) error {
	a.mu.Lock()
	tells := a.health.Report.Tells
	a.mu.Unlock()

	if !tells {
		return nil
	}

	// The newest ones have most to tell.
	last, more, err := a.pollPage(ctx, source.ReplayedJob{})
	if err != nil || !more {
		a.polled = source.ReplayedJob{}
		return err
	}

	// Of the others a page in each round, all in turn.
	if a.polled.Seq == 0 {
		a.polled = last
	}

	a.polled, more, err = a.pollPage(ctx, a.polled)
	if !more {
		a.polled = source.ReplayedJob{}
	}

	return err
}

// pollPage asks for the jobs of one page, and returns the last of them and whether there are
// more.
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
