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
	maxQuarantined = 1000 // how many records of a source are listed; the others are only counted

	// How much is kept of a record.
	maxName     = 1000 // bytes of its key, and of each of its other names
	maxFailures = 100  // of its failures, the newest ones
	maxWarnings = 20

	// refusedFor is how long a record that the store refused is not passed to the store again.
	refusedFor = 10 * time.Minute
)

// quarantine has the records of a source that Redrive cannot take over, by their keys. A record
// stays in it until a page has the record and it can be taken over, or until a whole scan has not
// met it. The quarantine is not stored: after a restart, the first scan fills it again.
type quarantine map[string]*entry

// entry is a record in quarantine.
type entry struct {
	source.Quarantined
	version int64     // the version that the store refused; 0: the record was not passed to the store
	tried   time.Time // when the store last refused it; zero: it was not passed to the store
	met     bool      // the current scan has met it
	page    int       // the number of the last page in which it was refused or skipped
}

// overflow is a record for which the quarantine had no room. Its fields are those of entry.
type overflow struct {
	version int64
	tried   time.Time
	page    int
}

// refuse puts a record into quarantine, or counts it in beyond if the quarantine is full.
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

// logRefusal logs that a record was put into quarantine: the first record as a warning, and the
// others at the level debug.
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

	// The quarantine may have been full when the record was refused, in this scan or the last one.
	key := hashOf(r.Key)
	o, found := a.scan.beyond[key]
	if !found {
		o = a.beyond[key]
	}

	if !recent(o.version, o.tried) {
		return false
	}

	a.scan.beyond[key] = overflow{o.version, o.tried, a.page}

	return true
}

// release takes those records of a page out of quarantine that were neither refused nor skipped
// when this page was processed.
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

// quarantineUnmet marks all records in quarantine as not met, at the beginning of a scan.
func (a *attached) quarantineUnmet() {
	for _, e := range a.quarantine {
		e.met = false
	}
}

// releaseUnmet takes those records out of quarantine that a whole scan has not met. beyond are the
// records for which the quarantine had no room in that scan.
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

// tellQuarantine lists the records in quarantine in the health of the source, the newest first.
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

// readRecords reads the unseen records of a page completely, and returns those that can be passed
// to the store. It puts the others into quarantine: records that the source refused to give, that
// cannot be read, or that cannot be kept. It leaves out records that the store has refused
// recently.
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
		if !isText(r.Lineage) { // what the lineage is does not matter, if it is the same each time
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

// complete reads what is not yet read of a record: its payload, its error and its trace. It hides
// the secrets in them. It returns why the record cannot be read, or "".
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

// unfit returns why a record cannot be kept, or "". Its limit is twice source.MaxRecord, because a
// driver may give the content of a record in two forms: as it was read, and as the payload.
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

	if !isText(r.Key) || !isText(r.Place) || !isText(r.VersionToken) { // unreachable: the drivers make sure of it
		return "What names it is not text."
	}

	if n := sizeOf(r); n > most {
		size, limit := source.Sizes(int64(n), most)
		return fmt.Sprintf("With its payload and its earlier failures, it has %s, which is larger than the limit of %s.", size, limit)
	}

	return ""
}

// isText reports whether every database can store s unchanged.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// sizeOf returns roughly how many bytes a record has.
func sizeOf(r *source.Record) int {
	n := len(r.Raw) + len(r.Payload) + len(r.Meta) + len(r.Trace) + len(r.Error.Message)
	for _, f := range r.History {
		n += len(f.Error.Message) + len(f.Trace)
	}

	return n
}

// mirror passes records to the store, several in one transaction, and returns how many jobs were
// added or changed.
func (a *attached) mirror(ctx context.Context, unseen []source.Record) (changed int, err error) {
	for len(unseen) > 0 {
		// Take as many records as are not larger than stepBytes together, but at least one.
		n, bytes := 0, 0
		for n < len(unseen) && (n == 0 || bytes+sizeOf(&unseen[n]) <= stepBytes) {
			bytes += sizeOf(&unseen[n])
			n++
		}

		changedNow, err := a.step(ctx, unseen[:n])
		changed += changedNow
		if err != nil {
			return changed, err
		}

		unseen = unseen[n:]
	}

	return changed, nil
}

// step passes records to the store in one transaction. If that fails because of a record, step
// tries each half of the records on its own, and so on, until only that record is left, which it
// puts into quarantine.
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

// keep passes records to the store. A panic in the store becomes an error.
func (a *attached) keep(ctx context.Context, now time.Time, unseen []source.Record) (changed int, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("The taking over of records ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()

	return a.store.Update(ctx, now, a.Name, unseen)
}

// affectsAll reports whether an error of the store has nothing to do with the records, so that it
// would come with any others as well.
func affectsAll(err error) bool {
	return slices.ContainsFunc([]error{
		fault.ErrBusy, fault.ErrStorageFull, fault.ErrReadOnly, fault.ErrUnsafe, fault.ErrBroken, context.Canceled, context.DeadlineExceeded,
	}, func(kind error) bool { return errors.Is(err, kind) })
}
