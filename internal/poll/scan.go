package poll

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"redrive/internal/source"
)

// scan is one reading of all that is at a source. It goes on from round to round.
type scan struct {
	began time.Time
	next  string          // where it goes on; empty at its beginning
	seen  map[int64]int64 // the versions of the records that it has met, by the hashes of their keys
	fresh bool            // all records of the last page were unseen

	beyond map[int64]overflow // records that found no place in the quarantine, by the hashes of their keys
}

// hashOf is a key in eight bytes: a scan can meet a million.
func hashOf(key string) int64 { return (&source.Record{VersionToken: key}).Version() }

// readNewest reads from the beginning as long as that brings unseen records. Of the records
// that share a key, it meets the first one first, which counts for the rest of the scan, too.
func (a *attached) readNewest(ctx context.Context) error {
	if a.scan.next == "" { // the scan begins there anyhow
		return nil
	}

	seen := map[int64]int64{} // by this reading
	after := ""
	for {
		page, err := a.readPage(ctx, after)
		if err != nil {
			return err
		}

		a.oneOfEachKey(&page, seen)
		remember(seen, page)

		unseen, err := a.records.Unseen(ctx, a.Name, page.Records)
		if err != nil {
			return err
		}

		// Without those that cannot be stored, or not yet.
		unseen, err = a.prepare(ctx, page, unseen)
		if err != nil {
			return err
		}

		stored, err := a.mirror(ctx, unseen)
		if err != nil {
			return err
		}

		remember(a.scan.seen, page)
		a.release(page)

		if stored == 0 || page.Next == "" {
			return nil
		}

		after = page.Next
	}
}

// continueScan reads a slice of the scan through all that is at the source, and ends the scan
// when nothing is left to read.
func (a *attached) continueScan(ctx context.Context) error {
	if a.scan.seen == nil {
		a.scan = scan{began: time.Now(), seen: map[int64]int64{}, beyond: map[int64]overflow{}}
		a.quarantineUnmet()
	}

	page, err := a.readPage(ctx, a.scan.next)
	if err != nil {
		return err
	}

	read, slice := 0, a.slice()
	for {
		read += max(1, len(page.Records)+len(page.Refused)) // a page without any is work, too
		last := page.Next == "" || read >= slice

		next, err := a.storePage(ctx, page, last)
		if err != nil {
			return err
		}

		if last {
			break
		}

		page = next
	}

	if a.scan.next != "" {
		return nil
	}

	return a.endScan(ctx)
}

// storePage gives a page of the scan to the store. Meanwhile, the source is asked for the next
// page, unless this is the last one.
func (a *attached) storePage(ctx context.Context, page source.Page, last bool) (next source.Page, err error) {
	a.oneOfEachKey(&page, a.scan.seen)

	// In a first reading all records are unseen, and the store looks anyhow.
	unseen := page.Records
	if !a.scan.fresh {
		unseen, err = a.records.Unseen(ctx, a.Name, page.Records)
		if err != nil {
			return next, err
		}
	}

	unseen, err = a.prepare(ctx, page, unseen)
	if err != nil {
		return next, err
	}

	// Store this page while the source prepares the next one.
	var stored int
	var storing errgroup.Group
	storing.Go(func() error {
		return a.safely(func() (err error) {
			stored, err = a.mirror(ctx, unseen)
			return err
		})
	})

	var readErr error
	if !last {
		next, readErr = a.readPage(ctx, page.Next)
	}

	err = storing.Wait()
	if err != nil {
		return next, err
	}

	// The page is stored, so the scan goes on behind it, even if the next one could not be read.
	remember(a.scan.seen, page)
	a.release(page)
	a.scan.next = page.Next
	a.scan.fresh = stored > 0 && stored == len(page.Records)

	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Reading = len(a.scan.seen)

	return next, readErr
}

// readPage reads a page of dead records behind a place.
func (a *attached) readPage(ctx context.Context, after string) (source.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	return a.origin.Scan(ctx, after, pageSize)
}

// slice is how many records of a scan, with those that are refused, are read in a round.
func (a *attached) slice() int {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.health.Ready {
		return sliceSize
	}

	return firstSlice
}

// remember adds the records of a page to those that were met.
func remember(seen map[int64]int64, page source.Page) {
	for i := range page.Records {
		r := &page.Records[i]
		seen[hashOf(r.Key)] = r.Version()
	}

	for _, r := range page.Refused {
		seen[hashOf(r.Key)] = 0 // its version is not known
	}
}

// oneOfEachKey leaves out records whose key another record of the page has, or one that was
// met before: the first one counts. If each of them were taken for one that died again, every
// scan would add a run to the same job. A record that has really died again since it was met
// is met by the next scan. Where the source says that records can have the same key, the
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
			version, before := seen[hashOf(r.Key)]
			if !before || version == r.Version() {
				kept = append(kept, *r)
				continue
			}
		}

		// The same record twice is no other one.
		other := first == nil || first.Version() != r.Version()
		if shared != "" && other {
			page.Refused = append(page.Refused, source.Refusal{Key: r.FullName(), Why: shared})
		}
	}

	page.Records = kept
}

// prepare makes records of a page ready for the store. It leaves out those of which it is not
// known yet whether they are the next run of a job, or another job with the same lineage: the
// source cannot tell whether the record of that job has left.
func (a *attached) prepare(ctx context.Context, page source.Page, unseen []source.Record) ([]source.Record, error) {
	unseen = a.readRecords(page, unseen)

	// A duplicate that has left was replayed elsewhere, and its job has died again.
	duplicates, err := a.records.Duplicates(ctx, a.Name, unseen)
	if err != nil {
		return nil, err
	}

	unclear, err := a.endVanished(ctx, duplicates)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(unseen, func(r source.Record) bool {
		return slices.ContainsFunc(unclear, func(p source.Present) bool { return p.Lineage == r.Lineage })
	}), nil
}

// endScan ends a scan: the source is asked by name for each record that the scan has not met.
func (a *attached) endScan(ctx context.Context) error {
	// Whatever comes of it, the next round begins another scan.
	ended := a.scan
	a.scan = scan{}

	after := int64(0)
	for {
		// Only records that Redrive read before the scan began: the scan may have passed the
		// place of a later one.
		keys, err := a.records.PresentKeys(ctx, a.Name, ended.began, after, keysAtOnce)
		if err != nil {
			return err
		}

		err = a.askForUnmet(ctx, keys, ended.seen)
		if err != nil {
			return err
		}

		if len(keys) < keysAtOnce {
			break
		}

		after = keys[len(keys)-1].Seq
	}

	a.releaseUnmet(ended.beyond)

	a.mu.Lock()
	defer a.mu.Unlock()

	// The source was read from its beginning to its end.
	a.health.Ready, a.health.Reading = true, len(ended.seen)

	return nil
}

// askForUnmet asks the source for those of its records that a scan has not met.
func (a *attached) askForUnmet(ctx context.Context, keys []source.PresentKey, seen map[int64]int64) error {
	var unmet []int64
	for _, k := range keys {
		_, met := seen[hashOf(k.Key)]
		if !met {
			unmet = append(unmet, k.Seq)
		}
	}

	// So many records are asked for at a time as a page has.
	for some := range slices.Chunk(unmet, pageSize) {
		present, err := a.records.Present(ctx, some)
		if err != nil {
			return err
		}

		_, err = a.endVanished(ctx, present)
		if err != nil {
			return err
		}
	}

	return nil
}

// endVanished asks the source whether records are there, and ends the jobs of those that have
// left. It returns the records of which the source cannot tell yet; they are asked for again
// soon.
func (a *attached) endVanished(ctx context.Context, present []source.Present) (unclear []source.Present, err error) {
	if len(present) == 0 {
		return nil, nil
	}

	// The source is asked as for discards that had begun: where are their records?
	acts := make([]source.Act, len(present))
	for i, p := range present {
		acts[i] = source.Act{ID: int64(i), Kind: source.Discard, Record: p.Record}
	}

	found, err := a.find(ctx, acts)
	if err != nil {
		return nil, err
	}

	var gone []int64

	// A record about which no answer came is one of which the source cannot tell yet.
	answered := make([]bool, len(present))
	for _, r := range found {
		answered[r.ID] = true
		if r.State == source.Gone || r.State == source.Done {
			gone = append(gone, present[r.ID].Seq)
		}
	}

	for i, p := range present {
		if !answered[i] {
			unclear = append(unclear, p)
		}
	}

	a.soon = a.soon || len(unclear) > 0

	_, err = a.store.Vanished(ctx, time.Now(), a.Name, gone)

	return unclear, err
}
