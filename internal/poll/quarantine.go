package poll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/fault"
	"redrive/internal/source"
)

const (
	maxQuarantined = 1000 // records of a source that are listed; others are counted

	// What is kept of a record.
	maxName     = 1000 // bytes of a key and of what else identifies a record
	maxFailures = 100  // of a record, the newest ones
	maxWarnings = 20   // of a record

	// refusedFor is how long a record that the store refused is not given to it again.
	refusedFor = 10 * time.Minute
)

// quarantine holds the records of a source that Redrive cannot take over, by their keys. It
// is kept from scan to scan, and the end of a scan removes the records that the scan has not
// met. It is not stored: after a restart, the first scan fills it again.
type quarantine map[string]*entry

// entry is a record in quarantine.
type entry struct {
	source.Quarantined
	version int64     // of the record, where it was read
	tried   time.Time // when the store refused it last; zero: it never came that far
	met     bool      // in the scan that is under way
	page    int       // the last one in which it was refused or skipped
}

// overflow is a record that came when the quarantine was full.
type overflow struct {
	version int64     // of the record, where it was read
	tried   time.Time // when the store refused it last; zero: it never came that far
	page    int       // the last one in which it was refused or skipped
}

// refuse puts a record into quarantine, or only counts it if the quarantine is full.
func (a *attached) refuse(r source.Refusal, version int64, tried time.Time) {
	key := clip.Text(r.Key, maxName)
	why := a.keptText(r.Why, maxSentence)
	e, known := a.quarantine[key]

	if !known && len(a.quarantine) == maxQuarantined {
		a.scan.beyond[hashOf(r.Key)] = overflow{version, tried, a.page}
		return
	}

	if !known {
		delete(a.scan.beyond, hashOf(r.Key))

		e = &entry{Quarantined: source.Quarantined{Since: time.Now()}}
		a.quarantine[key] = e
		a.logRefusal(key, why)
	}

	e.Refusal = source.Refusal{Key: key, Why: why}
	e.version, e.tried = version, tried
	e.met, e.page = true, a.page
}

// logRefusal logs that a record was put into quarantine: the first one as a warning, the
// others for those who look for them.
func (a *attached) logRefusal(key, why string) {
	level := slog.LevelDebug
	if len(a.quarantine) == 1 {
		level = slog.LevelWarn
	}

	a.log.Log(context.Background(), level,
		"A record of a source is in quarantine, because it cannot be taken over. The others are not affected.", "key", key, "why", why)
}

// skipRefused reports whether the store refused this version of a record less than refusedFor
// ago. If so, the record stays in quarantine.
func (a *attached) skipRefused(r *source.Record) bool {
	recent := func(version int64, tried time.Time) bool {
		return !tried.IsZero() && version == r.Version() && time.Since(tried) < refusedFor
	}

	if e := a.quarantine[clip.Text(r.Key, maxName)]; e != nil {
		if !recent(e.version, e.tried) {
			return false
		}

		e.met, e.page = true, a.page

		return true
	}

	// It may have found no place, in this scan or in the one before.
	key := hashOf(r.Key)
	o, again := a.scan.beyond[key]
	if !again {
		o = a.beyond[key]
	}

	if !recent(o.version, o.tried) {
		return false
	}

	a.scan.beyond[key] = overflow{o.version, o.tried, a.page}

	return true
}

// release takes the records of a page out of quarantine that were not refused in it.
func (a *attached) release(page source.Page) {
	if len(a.quarantine) == 0 && len(a.scan.beyond) == 0 {
		return
	}

	for i := range page.Records {
		key := clip.Text(page.Records[i].Key, maxName)
		if e := a.quarantine[key]; e != nil && e.page != a.page {
			delete(a.quarantine, key)
		}

		hash := hashOf(page.Records[i].Key)
		if o, refused := a.scan.beyond[hash]; refused && o.page != a.page {
			delete(a.scan.beyond, hash)
		}
	}

	a.tellQuarantine()
}

// quarantineUnmet begins to look which records in quarantine a scan meets.
func (a *attached) quarantineUnmet() {
	for _, e := range a.quarantine {
		e.met = false
	}
}

// releaseUnmet takes the records out of quarantine that the scan has not met.
func (a *attached) releaseUnmet(beyond map[int64]overflow) {
	a.beyond = beyond
	for key, e := range a.quarantine {
		if !e.met {
			delete(a.quarantine, key)
		}
	}

	a.tellQuarantine()

	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Beyond = len(beyond)
}

// tellQuarantine lets the health of the source say which records are in quarantine.
func (a *attached) tellQuarantine() {
	var all []source.Quarantined
	for _, e := range a.quarantine {
		all = append(all, e.Quarantined)
	}

	slices.SortFunc(all, func(a, b source.Quarantined) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Key, b.Key))
	})

	a.mu.Lock()
	defer a.mu.Unlock()

	a.health.Quarantined = all
}

// readRecords reads the rest of the new records of a page. It puts the records into
// quarantine that the page has refused, that cannot be read, or that cannot be kept, and
// leaves out those that the store refused a short time ago.
func (a *attached) readRecords(page source.Page, unseen []source.Record) (all []source.Record) {
	a.page++
	for _, r := range page.Refused {
		a.refuse(r, 0, time.Time{})
	}

	for _, r := range unseen {
		if a.skipRefused(&r) {
			continue
		}

		why := a.complete(page, &r)
		if !isText(r.Lineage) { // any text does that is the same one each time
			r.Lineage = strconv.QuoteToASCII(r.Lineage)
		}

		if why == "" {
			why = unfit(&r)
		}

		if why != "" {
			a.refuse(source.Refusal{Key: r.Key, Why: why}, 0, time.Time{})
			continue
		}

		all = append(all, r)
	}

	return all
}

// complete reads the rest of a record, and says why that is not possible.
func (a *attached) complete(page source.Page, r *source.Record) (why string) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("The reading of a record ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			why = fmt.Sprintf("It cannot be read: %v.", p)
		}
	}()

	if page.Read != nil {
		page.Read(r)
	}

	understand(r)
	a.hideIn(r)

	return ""
}

// unfit says why a record cannot be kept; empty when it can. A family may give a record
// in two forms, as it was read and as its payload, so both together can be twice as large.
func unfit(r *source.Record) string {
	const most = 2 * source.MaxRecord

	for _, part := range []struct{ what, text string }{
		{"key", r.Key}, {"job's name", r.Lineage}, {"place's name", r.Place}, {"version", r.VersionToken},
	} {
		if len(part.text) > maxName {
			size, limit := source.Sizes(int64(len(part.text)), maxName)
			return fmt.Sprintf("Its %s has %s, which is larger than the limit of %s.", part.what, size, limit)
		}
	}

	if !isText(r.Key) || !isText(r.Place) || !isText(r.VersionToken) { // unreachable: the families see to it
		return "What names it is not text."
	}

	if n := sizeOf(r); n > most {
		size, limit := source.Sizes(int64(n), most)
		return fmt.Sprintf("With its payload and its earlier failures, it has %s, which is larger than the limit of %s.", size, limit)
	}

	return ""
}

// isText reports whether any database can keep a text as it is.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// sizeOf is roughly how many bytes a record has.
func sizeOf(r *source.Record) int {
	n := len(r.Raw) + len(r.Payload) + len(r.Meta) + len(r.Trace) + len(r.Error.Message)
	for _, f := range r.History {
		n += len(f.Error.Message) + len(f.Trace)
	}

	return n
}

// mirror takes records over, in steps, and returns how many jobs came or changed.
func (a *attached) mirror(ctx context.Context, unseen []source.Record) (changed int, err error) {
	for len(unseen) > 0 {
		// As many as are not too large together, one at least.
		n, bytes := 0, 0
		for n < len(unseen) && (n == 0 || bytes+sizeOf(&unseen[n]) <= stepBytes) {
			bytes += sizeOf(&unseen[n])
			n++
		}

		some, err := a.step(ctx, unseen[:n])
		changed += some
		if err != nil {
			return changed, err
		}

		unseen = unseen[n:]
	}

	return changed, nil
}

// step takes records over in one transaction. If a record makes the transaction fail, step
// splits the records in half until it has found that record, and takes over the others.
func (a *attached) step(ctx context.Context, unseen []source.Record) (changed int, err error) {
	now := time.Now()

	changed, err = a.keep(ctx, now, unseen)
	if err == nil || ctx.Err() != nil || affectsAll(err) {
		return changed, err
	}

	if len(unseen) == 1 {
		a.refuse(source.Refusal{Key: unseen[0].Key, Why: "It cannot be kept: " + err.Error()}, unseen[0].Version(), now)
		return 0, nil
	}

	first, err := a.step(ctx, unseen[:len(unseen)/2])
	if err != nil {
		return first, err
	}

	second, err := a.step(ctx, unseen[len(unseen)/2:])

	return first + second, err
}

// keep gives records to the store. A panic over one of them is an error.
func (a *attached) keep(ctx context.Context, now time.Time, unseen []source.Record) (changed int, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("The taking over of records ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()

	return a.store.Update(ctx, now, a.Name, unseen)
}

// affectsAll reports whether an error of the store would refuse any other record as well.
func affectsAll(err error) bool {
	return slices.ContainsFunc([]error{
		fault.ErrBusy, fault.ErrStorageFull, fault.ErrReadOnly, fault.ErrUnsafe, fault.ErrBroken, context.Canceled, context.DeadlineExceeded,
	}, func(kind error) bool { return errors.Is(err, kind) })
}
