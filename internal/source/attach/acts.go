package attach

import (
	"context"
	"errors"
	"slices"
	"time"

	"redrive/internal/source"
)

// lookUp settles what had begun when an earlier process ended, or when the connection
// broke: the source is asked where the records are.
func (a *attached) lookUp(ctx context.Context) error {
	for !a.settled {
		acts, err := a.ledger.Begun(ctx, a.Name, actsAtOnce)
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
		if err := a.settle(ctx, acts, ended); err != nil {
			return err
		}
		if err := a.ledger.Reopen(ctx, again); err != nil {
			return err
		}
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
			r.State, r.Why = source.Unknown, "the process ended while the source was told, and the record lies there no more"
		}
		ended = append(ended, r)
	}
	return again, ended
}

func (a *attached) find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.origin.Find(ctx, acts)
}

// act carries out what the ledger asks for. Once the source was told, the answer is
// written down also when the program is about to end.
func (a *attached) act(ctx context.Context) error {
	for ctx.Err() == nil {
		if waits, err := a.ledger.Waiting(ctx, a.Name); !waits || err != nil {
			return err
		}
		acts, err := a.ledger.Take(ctx, a.Name, actsAtOnce)
		if err != nil || len(acts) == 0 {
			return err
		}
		earlier := a.settled
		a.settled = false // until the ledger knows how these ended, also if this ends in a panic

		results, err := a.tell(ctx, acts)
		results, untold := sorted(results)
		if len(untold) > 0 {
			err = errors.Join(err, a.ledger.Reopen(context.WithoutCancel(ctx), untold))
		}
		if settled := a.settle(context.WithoutCancel(ctx), acts, results); settled != nil || err != nil {
			if err == nil {
				err = settled
			}
			return err
		}
		a.settled = earlier
		if len(untold) > 0 {
			a.soon = true
			return nil
		}
	}
	return nil
}

// tell tells the source. At the end of the program it has a few seconds more to answer;
// what it has not answered by then is looked up at the next start.
func (a *attached) tell(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	telling, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		sleep(telling, lastWord)
		cancel()
	})
	defer stop()
	return a.origin.Act(telling, acts)
}

// sorted are the results of acts that have ended, and those of which the source was not
// told: they are asked for as before.
func sorted(results []source.Result) (ended []source.Result, untold []int64) {
	for _, r := range results {
		if r.State == source.Asked {
			untold = append(untold, r.ID)
		} else {
			ended = append(ended, r)
		}
	}
	return ended, untold
}

// settle writes down how acts ended, and counts them.
func (a *attached) settle(ctx context.Context, acts []source.Act, results []source.Result) error {
	if len(results) == 0 {
		return nil
	}
	for i := range results {
		results[i].Why = a.said(results[i].Why, maxSentence)
	}
	if err := a.store.SettleActs(ctx, time.Now(), results); err != nil {
		return err
	}
	kinds := map[int64]source.Kind{}
	for _, act := range acts {
		kinds[act.ID] = act.Kind
	}
	a.tally.end(kinds, results)
	for _, r := range results {
		a.soon = a.soon || r.State == source.Changed
	}
	return nil
}

// hear asks the source which of the jobs that it took have succeeded: those that it took
// last, and a page of the others, from where the last round ended.
func (a *attached) hear(ctx context.Context) error {
	a.mu.Lock()
	tells := a.health.Report.Tells
	a.mu.Unlock()
	if !tells {
		return nil
	}
	last, more, err := a.hearOf(ctx, source.Handed{})
	if err != nil || !more {
		a.asked = source.Handed{}
		return err
	}
	if a.asked.Seq == 0 {
		a.asked = last
	}
	if a.asked, more, err = a.hearOf(ctx, a.asked); !more {
		a.asked = source.Handed{}
	}
	return err
}

// hearOf asks for the jobs of a page, and returns the last of them and whether there are
// more.
func (a *attached) hearOf(ctx context.Context, before source.Handed) (last source.Handed, more bool, err error) {
	handed, err := a.ledger.Handed(ctx, a.Name, before, pageSize)
	if err != nil || len(handed) == 0 {
		return last, false, err
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	succeeded, err := a.origin.Succeeded(asking, handed)
	cancel()
	if err == nil && len(succeeded) > 0 {
		var n int
		n, err = a.store.Succeeded(ctx, time.Now(), a.Name, succeeded)
		a.tally.succeed(n)
	}
	return handed[len(handed)-1], len(handed) == pageSize, err
}
