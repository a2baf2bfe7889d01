package attach

import (
	"context"
	"slices"
	"sync"
	"time"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/store/sources"
)

// newest reads from the beginning as long as that brings news. Of the records that share a
// key, it meets the first one first, which counts for the rest of the pass, too.
func (a *attached) newest(ctx context.Context) error {
	if a.pass.next == "" { // the pass begins there anyhow
		return nil
	}
	seen := map[int64]int64{}
	for after, more := "", true; more; {
		page, err := a.scan(ctx, after)
		if err != nil {
			return err
		}
		a.oneOfEachKey(&page, seen)
		see(seen, page)
		news, err := a.ledger.News(ctx, a.Name, page.Records)
		if err == nil {
			news, err = a.prepare(ctx, page, news)
		}
		if err != nil {
			return err
		}
		n, err := a.mirror(ctx, news)
		if err != nil {
			return err
		}
		see(a.pass.seen, page)
		a.release(page)
		after, more = page.Next, n > 0 && page.Next != ""
	}
	return nil
}

// sweep goes on with the pass through all that is at the source, and ends it.
func (a *attached) sweep(ctx context.Context) error {
	if a.pass.seen == nil {
		a.pass = pass{began: time.Now(), seen: map[int64]int64{}, beyond: map[int64]overflow{}}
		a.startPass()
	}
	page, err := a.scan(ctx, a.pass.next)
	for read, slice := 0, a.slice(); err == nil; {
		read += max(1, len(page.Records)+len(page.Refused)) // a page without any is work, too
		last := page.Next == "" || read >= slice
		var next source.Page
		if next, err = a.takeOver(ctx, page, last); err != nil || last {
			break
		}
		page = next
	}
	if err == nil && a.pass.next == "" {
		err = a.passed(ctx)
	}
	return err
}

// takeOver takes over a page of the pass. While the store does that, the source is asked for
// the next page, unless this is the last one.
func (a *attached) takeOver(ctx context.Context, page source.Page, last bool) (next source.Page, err error) {
	a.oneOfEachKey(&page, a.pass.seen)
	news := page.Records
	if !a.pass.fresh { // a first reading is nothing but news, and the store looks anyhow
		if news, err = a.ledger.News(ctx, a.Name, page.Records); err != nil {
			return next, err
		}
	}
	if news, err = a.prepare(ctx, page, news); err != nil {
		return next, err
	}
	var n int
	var taken error
	var taking sync.WaitGroup
	taking.Go(func() {
		taken = a.safely(func() (err error) {
			n, err = a.mirror(ctx, news)
			return err
		})
	})
	if !last {
		next, err = a.scan(ctx, page.Next)
	}
	if taking.Wait(); taken != nil {
		return next, taken
	}
	see(a.pass.seen, page)
	a.release(page)
	a.pass.next, a.pass.fresh = page.Next, n > 0 && n == len(page.Records)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.health.Reading = len(a.pass.seen)
	return next, err
}

// see notes the records of a page among those that were met.
func see(seen map[int64]int64, page source.Page) {
	for i := range page.Records {
		r := &page.Records[i]
		seen[keyMark(r.Key)] = r.Mark()
	}
	for _, r := range page.Refused {
		seen[keyMark(r.Key)] = 0 // its mark is not known
	}
}

// oneOfEachKey leaves out records whose key another record of the page has, or one that was
// met before: the first one counts. Taken for one that died again, each of them would be a
// run more of the same job at every look. A record that has really died again since it was
// met is met by the next pass. Where the source says that records can have the same key, the
// others are refused, so that people see which they are.
func (a *attached) oneOfEachKey(page *source.Page, seen map[int64]int64) {
	a.mu.Lock()
	shared := a.health.Report.Shared
	a.mu.Unlock()

	met := make(map[string]*source.Record, len(page.Records))
	var kept []source.Record
	for i := range page.Records {
		r := &page.Records[i]
		first := met[r.Key]
		if first == nil {
			met[r.Key] = r
			if mark, before := seen[keyMark(r.Key)]; !before || mark == r.Mark() {
				kept = append(kept, *r)
				continue
			}
		}
		if shared != "" && (first == nil || first.Mark() != r.Mark()) {
			page.Refused = append(page.Refused, source.Refusal{Key: r.FullName(), Why: shared})
		}
	}
	page.Records = kept
}

// slice is how many records of a pass, with those that are refused, are read in a round.
func (a *attached) slice() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.health.Ready {
		return sliceSize
	}
	return firstSlice
}

// scan reads a page.
func (a *attached) scan(ctx context.Context, after string) (source.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.origin.Scan(ctx, after, pageSize)
}

// prepare makes records of a page ready for the store, without those of which it is not
// known yet whether they are the next run of a job or another job with the same thread: the
// source cannot tell whether the record of that job has left.
func (a *attached) prepare(ctx context.Context, page source.Page, news []source.Record) ([]source.Record, error) {
	news = a.readRecords(page, news)
	twins, err := a.ledger.Twins(ctx, a.Name, news)
	if err != nil {
		return nil, err
	}
	unclear, err := a.missed(ctx, twins) // one that has left was replayed elsewhere, and its job has died again
	return slices.DeleteFunc(news, func(r source.Record) bool {
		return slices.ContainsFunc(unclear, func(l sources.Lying) bool { return l.Thread == r.Thread })
	}), err
}

// hideIn takes secrets out of what a record says of its failures, as out of what a
// handler says. What an act needs is left as it is.
func (a *attached) hideIn(r *source.Record) {
	hide := func(e *job.ErrorInfo, trace *string) {
		e.Type, e.Message = a.said(e.Type, job.MaxType), a.said(e.Message, job.MaxErrorMessage)
		*trace = a.said(*trace, job.MaxTrace)
	}
	r.Type = clip.Text(r.Type, job.MaxType)
	hide(&r.Error, &r.Trace)
	r.History = r.History[max(0, len(r.History)-maxFailures):]
	for i := range r.History {
		hide(&r.History[i].Error, &r.History[i].Trace)
	}
	r.Warnings = r.Warnings[:min(len(r.Warnings), maxWarnings)]
	for i := range r.Warnings {
		r.Warnings[i] = a.said(r.Warnings[i], maxSentence)
	}
}

// passed ends a whole pass: what was not met is asked for by its name, and has left
// when the source does not have it.
func (a *attached) passed(ctx context.Context) error {
	done := a.pass
	a.pass = pass{}
	for after, more := int64(0), true; more; {
		lie, err := a.ledger.Lies(ctx, a.Name, done.began, after, namesOnce)
		if err != nil {
			return err
		}
		if more = len(lie) == namesOnce; len(lie) > 0 {
			after = lie[len(lie)-1].Seq
		}
		if err := a.unmet(ctx, lie, done.seen); err != nil {
			return err
		}
	}
	a.endPass(done.beyond)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.health.Ready, a.health.Reading = true, len(done.seen)
	return nil
}

// unmet asks the source for those of its records that a pass has not met.
func (a *attached) unmet(ctx context.Context, lie []sources.Named, seen map[int64]int64) error {
	var seqs []int64
	for _, n := range lie {
		if _, met := seen[keyMark(n.Key)]; !met {
			seqs = append(seqs, n.Seq)
		}
	}
	for some := range slices.Chunk(seqs, pageSize) {
		lying, err := a.ledger.Lying(ctx, some)
		if err == nil {
			_, err = a.missed(ctx, lying)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// missed asks the source for records that a pass has not met, and returns those of which
// the source cannot tell yet.
func (a *attached) missed(ctx context.Context, lying []sources.Lying) (unclear []sources.Lying, err error) {
	if len(lying) == 0 {
		return nil, nil
	}
	acts := make([]source.Act, len(lying))
	for i, l := range lying {
		acts[i] = source.Act{ID: int64(i), Kind: source.Discard, Record: l.Record}
	}
	found, err := a.find(ctx, acts)
	if err != nil {
		return nil, err
	}
	var gone []int64
	told := make([]bool, len(lying))
	for _, r := range found {
		told[r.ID] = true
		if r.State == source.Gone || r.State == source.Done {
			gone = append(gone, lying[r.ID].Seq)
		}
	}
	for i, l := range lying {
		if !told[i] {
			unclear = append(unclear, l)
		}
	}
	a.soon = a.soon || len(unclear) > 0
	_, err = a.store.Vanished(ctx, time.Now(), a.Name, gone)
	return unclear, err
}

// keyMark is a key in eight bytes: a pass can meet a million.
func keyMark(key string) int64 { return (&source.Record{Witness: key}).Mark() }
