package poll

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"redrive/internal/source"
)

// scan is one reading of all dead records of a source. It takes as many rounds as it needs.
type scan struct {
	began time.Time
	next  string          // the place after which it goes on; "": the beginning
	seen  map[int64]int64 // the versions of the records that it has met, by the hashes of their keys; nil: not begun
	fresh bool            // all records of the last page were unseen

	beyond map[int64]overflow // the records for which the quarantine had no room, by the hashes of their keys
}

// hashOf returns a hash of a key. A scan can meet a million records, so it remembers eight bytes of
// each and not the key.
func hashOf(key string) int64 { return (&source.Record{VersionToken: key}).Version() }

// readNewest reads pages from the beginning, where the newest records are, as long as they have
// unseen records. The records that it meets count as met by the scan.
func (a *attached) readNewest(ctx context.Context) error {
	if a.scan.next == "" { // continueScan reads from the beginning
		return nil
	}

	seen := map[int64]int64{} // what this call has met, as in scan
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

// continueScan reads the next slice of the scan, beginning another scan if the last one has ended.
// When nothing is left to read, it ends the scan.
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
		read += max(1, len(page.Records)+len(page.Refused)) // an empty page counts as well, so that the loop ends
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

// storePage passes a page of the scan to the store. Unless it is the last page of the slice, it
// reads the next one at the same time, and returns it.
func (a *attached) storePage(ctx context.Context, page source.Page, last bool) (next source.Page, err error) {
	a.oneOfEachKey(&page, a.scan.seen)

	// After a page of which all records were unseen, this one will be like that, too. Do without
	// the query: the store also leaves out what it has.
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

	// This page is stored, so the scan goes on after it, even if the next one could not be read.
	remember(a.scan.seen, page)
	a.release(page)
	a.scan.next = page.Next
	a.scan.fresh = stored > 0 && stored == len(page.Records)

	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Reading = len(a.scan.seen)

	return next, readErr
}

// readPage reads the page of dead records that follows a place.
func (a *attached) readPage(ctx context.Context, after string) (source.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	return a.origin.Scan(ctx, after, pageSize)
}

// slice returns how many records of the scan one round reads.
func (a *attached) slice() int {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.health.Ready {
		return sliceSize
	}

	return firstSlice
}

// remember adds the records of a page to those that were met (see scan.seen).
func remember(seen map[int64]int64, page source.Page) {
	for i := range page.Records {
		r := &page.Records[i]
		seen[hashOf(r.Key)] = r.Version()
	}

	for _, r := range page.Refused {
		seen[hashOf(r.Key)] = 0 // its version is not known
	}
}

// oneOfEachKey removes from a page the records that have the same key as another one before them,
// in this page or among those met earlier, unless it is the same version of the record. Otherwise
// each of them would be taken for the same job that has failed again, and every scan would add
// runs to that job. A record that has really failed again since it was met is read by the next
// scan.
//
// If the source has said that several records can have one key, those that are removed are
// refused, so that people see them in quarantine.
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

		// The same version twice is one record that was read twice.
		other := first == nil || first.Version() != r.Version()
		if shared != "" && other {
			page.Refused = append(page.Refused, source.Refusal{Key: r.FullName(), Why: shared})
		}
	}

	page.Records = kept
}

// prepare returns the unseen records of a page that can be passed to the store, read completely.
//
// If another record with the same lineage is mirrored, the new record is either the next run of
// that job, or another job. It is the next run if the other record has left the source. While the
// source cannot tell that, prepare leaves the new record out.
func (a *attached) prepare(ctx context.Context, page source.Page, unseen []source.Record) ([]source.Record, error) {
	unseen = a.readRecords(page, unseen)

	// A duplicate that has left was replayed elsewhere, and its job has failed again.
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

// endScan ends a scan. It asks the source for each present record that the scan has not met, and
// ends the jobs of those that have left.
func (a *attached) endScan(ctx context.Context) error {
	// The next round begins another scan, even if this fails.
	ended := a.scan
	a.scan = scan{}

	after := int64(0)
	for {
		// Only a record that was read before the scan began must have been met. The scan may have
		// passed the place of a later one already.
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

	a.health.Ready, a.health.Reading = true, len(ended.seen)

	return nil
}

// askForUnmet asks the source for those of the given records that a scan has not met, and ends the
// jobs of those that have left. seen is what the scan has met.
func (a *attached) askForUnmet(ctx context.Context, keys []source.PresentKey, seen map[int64]int64) error {
	var unmet []int64
	for _, k := range keys {
		_, met := seen[hashOf(k.Key)]
		if !met {
			unmet = append(unmet, k.Seq)
		}
	}

	for chunk := range slices.Chunk(unmet, pageSize) {
		present, err := a.records.Present(ctx, chunk)
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

// endVanished asks the source whether it still has these records, and ends the jobs of those that
// have left. It returns the records about which the source cannot tell yet, which are asked for
// again soon.
func (a *attached) endVanished(ctx context.Context, present []source.Present) (unclear []source.Present, err error) {
	if len(present) == 0 {
		return nil, nil
	}

	// Ask as for discards that had begun: Find tells where their records are now.
	acts := make([]source.Act, len(present))
	for i, p := range present {
		acts[i] = source.Act{ID: int64(i), Kind: source.Discard, Record: p.Record}
	}

	found, err := a.find(ctx, acts)
	if err != nil {
		return nil, err
	}

	var gone []int64

	// The source gives no answer for a record about which it cannot tell yet.
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
