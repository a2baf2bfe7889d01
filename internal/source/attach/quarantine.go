package attach

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
	"redrive/internal/job"
	"redrive/internal/source"
)

const (
	maxQuarantined = 1000 // records of a source that are remembered
	maxName        = 1000 // bytes of a key and of what else identifies a record
	maxFailures    = 100  // of a record, the newest ones
	maxWarnings    = 20   // of a record
	tryAgain       = 10 * time.Minute
)

// quarantine has the records of a source that cannot be taken over, by their keys. It is
// made new by each pass through the source, also after a restart, because the records are
// met again for as long as they are there.
type quarantine map[string]*held

// held is a record in quarantine.
type held struct {
	source.Quarantined
	mark  int64     // of the record, where it was read
	tried time.Time // when the store refused it last; zero: it never came that far
	met   bool      // in the pass that is under way
	page  int       // the last one in which it was refused
}

// late is a record that came when the quarantine was full.
type late struct {
	mark  int64     // of the record, where it was read
	tried time.Time // when the store refused it last; zero: it never came that far
	page  int       // the last one in which it was refused
}

// refuse puts a record into quarantine.
func (a *attached) refuse(r source.Refusal, mark int64, tried time.Time) {
	key, why := clip.Text(r.Key, maxName), a.said(r.Why, maxSentence)
	h, known := a.apart[key]
	switch {
	case known:
	case len(a.apart) == maxQuarantined:
		a.pass.beyond[keyMark(r.Key)] = late{mark, tried, a.page}
		return
	default:
		delete(a.pass.beyond, keyMark(r.Key))
		h = &held{Quarantined: source.Quarantined{Since: time.Now()}}
		a.apart[key] = h
		level := slog.LevelDebug
		if len(a.apart) == 1 {
			level = slog.LevelWarn
		}
		a.log.Log(context.Background(), level, "A record of a source cannot be taken over. All others are.", "key", key, "why", why)
	}
	h.Refusal = source.Refusal{Key: key, Why: why}
	h.mark, h.tried = mark, tried
	h.met, h.page = true, a.page
}

// waits reports whether the store refused a record as it is not long ago.
func (a *attached) waits(r *source.Record) bool {
	recent := func(mark int64, tried time.Time) bool {
		return !tried.IsZero() && mark == r.Mark() && time.Since(tried) < tryAgain
	}
	if h := a.apart[clip.Text(r.Key, maxName)]; h != nil {
		if !recent(h.mark, h.tried) {
			return false
		}
		h.met, h.page = true, a.page
		return true
	}

	key := keyMark(r.Key)
	l, again := a.pass.beyond[key]
	if !again {
		l = a.beyond[key]
	}
	if !recent(l.mark, l.tried) {
		return false
	}
	a.pass.beyond[key] = late{l.mark, l.tried, a.page}
	return true
}

// release takes the records of a page out of quarantine that were not refused in it.
func (a *attached) release(page source.Page) {
	if len(a.apart) == 0 && len(a.pass.beyond) == 0 {
		return
	}
	for i := range page.Records {
		key := clip.Text(page.Records[i].Key, maxName)
		if h := a.apart[key]; h != nil && h.page != a.page {
			delete(a.apart, key)
		}
		mark := keyMark(page.Records[i].Key)
		if l, refused := a.pass.beyond[mark]; refused && l.page != a.page {
			delete(a.pass.beyond, mark)
		}
	}
	a.tellQuarantine()
}

// anew begins to look which records in quarantine are still met.
func (a *attached) anew() {
	for _, h := range a.apart {
		h.met = false
	}
}

// forget takes the records out of quarantine that a whole pass has not met.
func (a *attached) forget(beyond map[int64]late) {
	a.beyond = beyond
	for key, h := range a.apart {
		if !h.met {
			delete(a.apart, key)
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
	for _, h := range a.apart {
		all = append(all, h.Quarantined)
	}
	slices.SortFunc(all, func(a, b source.Quarantined) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Key, b.Key))
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.health.Quarantined = all
}

// readable reads the rest of the records of a page, and puts those into quarantine with
// which that is not possible.
func (a *attached) readable(page source.Page, news []source.Record) (all []source.Record) {
	a.page++
	for _, r := range page.Refused {
		a.refuse(r, 0, time.Time{})
	}
	for _, r := range news {
		if a.waits(&r) {
			continue
		}
		why := a.complete(page, &r)
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
	a.hideIn(r)
	return ""
}

// unfit says why a record cannot be kept; empty when it can. A thread only has to be the
// same one each time.
func unfit(r *source.Record) string {
	if !isText(r.Thread) {
		r.Thread = strconv.QuoteToASCII(r.Thread)
	}
	for _, part := range []struct{ what, text string }{
		{"key", r.Key}, {"job's name", r.Thread}, {"place's name", r.Place}, {"version", r.Witness},
	} {
		if len(part.text) > maxName {
			size, limit := source.Size(int64(len(part.text))), source.Size(maxName)
			return fmt.Sprintf("Its %s has %s, which is larger than the limit of %s.", part.what, size, limit)
		}
	}
	if !isText(r.Key) || !isText(r.Place) || !isText(r.Witness) { // unreachable: the families see to it
		return "What names it is not text."
	}
	if n := sizeOf(r); n > 2*source.MaxRecord {
		return source.TooLarge(r.Key, int64(n)).Why
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
func (a *attached) mirror(ctx context.Context, news []source.Record) (changed int, err error) {
	for len(news) > 0 {
		n, bytes := 0, 0
		for n < len(news) && (n == 0 || bytes+sizeOf(&news[n]) <= stepBytes) {
			bytes += sizeOf(&news[n])
			n++
		}
		some, err := a.step(ctx, news[:n])
		changed += some
		if err != nil {
			return changed, err
		}
		news = news[n:]
	}
	return changed, nil
}

// step takes records over in one transaction. When that fails for a reason of a record, it
// is found by halves, and all others are taken over.
func (a *attached) step(ctx context.Context, news []source.Record) (changed int, err error) {
	now := time.Now()
	changed, err = a.keep(ctx, now, news)
	if err == nil || ctx.Err() != nil || meetsAll(err) {
		return changed, err
	}
	if len(news) == 1 {
		a.refuse(source.Refusal{Key: news[0].Key, Why: "It cannot be kept: " + err.Error()}, news[0].Mark(), now)
		return 0, nil
	}
	first, err := a.step(ctx, news[:len(news)/2])
	if err != nil {
		return first, err
	}
	second, err := a.step(ctx, news[len(news)/2:])
	return first + second, err
}

// keep gives records to the store. A panic over one of them is an error.
func (a *attached) keep(ctx context.Context, now time.Time, news []source.Record) (changed int, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("The taking over of records ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return a.store.Mirror(ctx, now, a.Name, news)
}

// meetsAll reports whether an error of the store says nothing about the records that it was
// given: it would refuse any others as well.
func meetsAll(err error) bool {
	return slices.ContainsFunc([]error{
		job.ErrBusy, job.ErrStorageFull, job.ErrReadOnly, job.ErrUnsafe, job.ErrBroken, context.Canceled, context.DeadlineExceeded,
	}, func(kind error) bool { return errors.Is(err, kind) })
}
