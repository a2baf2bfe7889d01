package view

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/redact"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
)

const (
	secret = "S3cr3t"
	hides  = "password=" + secret
)

var by = audit.Actor{Name: "ada", Address: "192.0.2.1"}

// world is a database in which a secret stands wherever there is a text.
type world struct {
	t           *testing.T
	store       *store.Store
	view        *View
	now         time.Time
	dead        string // a dead letter
	refused     string // a job whose dead letter was refused
	replayed    string // a job that was replayed with changes
	fingerprint string // of the group of all of them
	operation   int64  // on the dead letter
}

// newWorld makes a world that is seen through a redactor of the usual keys.
func newWorld(t *testing.T) *world {
	t.Helper()
	r, err := redact.New(redact.Options{})
	must(t, err)
	s, err := store.Open(t.Context(), store.Options{Database: databasetest.Database(t), OnCommit: func([]job.Change) {}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	w := &world{t: t, store: s, view: New(s, r), now: time.Now()}
	w.dead = w.failed(job.Delivery{})
	w.refused = w.failed(job.Delivery{Problem: "the receiver said " + hides})
	w.replayed = w.failed(job.Delivery{})
	d, err := s.Job(t.Context(), w.dead)
	must(t, err)
	w.fingerprint = d.Group.Fingerprint
	_, err = s.Groups.Note(t.Context(), w.now, w.fingerprint, hides, by)
	must(t, err)
	w.operation = w.collected()
	replayed := w.body()
	replayed.Payload = []byte(`{"n":2}`)
	_, err = s.ReplayWith(t.Context(), w.now, w.replayed, 1, job.Edit{Body: &replayed, Paths: []string{"$"}}, by)
	must(t, err)
	must(t, s.Accounts.Record(t.Context(), audit.Entry{At: w.now, Actor: by, Action: audit.Export, Subject: w.dead, Filter: `error:"` + hides + `"`}))
	return w
}

// showing is the same world through a view that redacts by other keys.
func (w *world) showing(t *testing.T, keys ...string) *world {
	t.Helper()
	r, err := redact.New(redact.Options{Keys: keys})
	must(t, err)
	other := *w
	other.view = New(w.store, r)
	return &other
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// body is what every job brings along.
func (w *world) body() job.Body {
	document := []byte(`{"password":"` + secret + `"}`)
	return job.Body{Type: "mail.send", TraceID: hides, MessageID: hides, Meta: document, Payload: document, Envelope: document}
}

// job is a job that has not been enqueued yet.
func (w *world) job() job.Job {
	b := w.body()
	b.MessageID = "" // no job is the repeat of another
	return job.Job{
		Queue: "mail", Type: b.Type, TraceID: b.TraceID, MessageID: b.MessageID, Meta: b.Meta, Payload: b.Payload, Envelope: b.Envelope,
		Policy: retry.Policy{Strategy: retry.Constant, MaxAttempts: 1, OnExhaustion: retry.DeadLetter}, Timeout: time.Minute,
	}
}

// failed runs a job for the only time and returns its id.
func (w *world) failed(d job.Delivery) string {
	w.t.Helper()
	ctx := w.t.Context()
	done, err := w.store.Enqueue(ctx, w.now, []job.Job{w.job()})
	must(w.t, err)
	claimed, _, err := w.store.Exchange(ctx, nil, job.Claim{Worker: "w", Now: w.now, Lease: time.Minute, Free: map[string]int{"mail": 9}})
	must(w.t, err)
	var all []job.Settlement
	for _, j := range claimed {
		all = append(all, j.Settle(job.Ending{
			Outcome: job.Failed, FinishedAt: w.now, Error: job.ErrorInfo{Type: hides, Message: "it failed: " + hides}, Trace: "at " + hides,
		}, func() float64 { return 0.5 }).Delivered(d))
	}
	_, _, err = w.store.Exchange(ctx, all, job.Claim{})
	must(w.t, err)
	return done[0].Job.ID
}

// collected is an operation whose jobs are known.
func (w *world) collected() int64 {
	w.t.Helper()
	_, err := w.store.Search.Update(w.t.Context())
	must(w.t, err)
	o, err := w.store.Operations.New(w.t.Context(), w.now, w.request(), by)
	must(w.t, err)
	for more := true; more; {
		more, err = w.store.Operations.Collect(w.t.Context(), w.now, o.ID)
		must(w.t, err)
	}
	return o.ID
}

func (w *world) request() operation.Request {
	f, err := filter.Parse(`error:"`+hides+`" state:dead_letter`, w.now)
	must(w.t, err)
	return operation.Request{Kind: operation.Replay, Filter: f, Pace: operation.Pace{Canary: -1, Guard: true}}
}

// original is the job as it is.
func (w *world) original() job.Job {
	d, err := w.store.Job(w.t.Context(), w.dead)
	must(w.t, err)
	return d.Job
}

// calls has a call of each method that returns what may have to be hidden.
func calls() map[string]func(*world, context.Context) []any {
	return map[string]func(*world, context.Context) []any{
		"JobBefore": func(w *world, ctx context.Context) []any {
			return append(all(w.view.JobBefore(ctx, w.replayed, math.MaxInt)), all(w.view.JobBefore(ctx, w.replayed, 1))...)
		},
		"Jobs": func(w *world, ctx context.Context) []any {
			return all(w.view.Jobs(ctx, filter.Filter{}, filter.Cursor{}, 9))
		},
		"WholeJobs": func(w *world, ctx context.Context) []any {
			return all(w.view.WholeJobs(ctx, filter.Filter{}, filter.Cursor{}, 9))
		},
		"Hits": func(w *world, ctx context.Context) []any {
			return all(w.view.Hits(ctx, filter.Filter{Text: "it failed", Payload: `"`}, []job.Job{w.original(), w.refusedJob(ctx)}))
		},
		"Recent":      func(w *world, ctx context.Context) []any { return all(w.view.Recent(ctx, "mail.send", 9)) },
		"DeadLetters": func(w *world, ctx context.Context) []any { return all(w.deadLetters(ctx)) },
		"Problems": func(w *world, ctx context.Context) []any {
			return all(w.view.Problems(ctx, []job.Job{w.refusedJob(ctx)}))
		},
		"HideJob":  func(w *world, _ context.Context) []any { return []any{w.view.HideJob(w.original())} },
		"HideBody": func(w *world, _ context.Context) []any { return []any{w.view.HideBody("mail.send", w.body())} },
		"Text":     func(w *world, _ context.Context) []any { return []any{w.view.Text(hides)} },
		"Enqueue":  func(w *world, ctx context.Context) []any { return all(w.view.Enqueue(ctx, w.now, []job.Job{w.job()})) },
		"Replay":   func(w *world, ctx context.Context) []any { return all(w.view.Replay(ctx, w.now, w.dead, 1, by)) },
		"Discard":  func(w *world, ctx context.Context) []any { return all(w.view.Discard(ctx, w.now, w.dead, 1, by)) },
		"Reschedule": func(w *world, ctx context.Context) []any {
			return all(w.view.Reschedule(ctx, w.now, w.dead, 1, w.now, by))
		},
		"Cancel":  func(w *world, ctx context.Context) []any { return all(w.view.Cancel(ctx, w.now, w.dead, 1, by)) },
		"Restore": func(w *world, ctx context.Context) []any { return all(w.view.Restore(ctx, w.now, w.dead, 1, by)) },
		"Resent": func(w *world, ctx context.Context) []any {
			return all(w.view.Resent(ctx, w.now, w.refused, 1, job.Delivery{}, by))
		},
		"Operation":  func(w *world, ctx context.Context) []any { return all(w.view.Operation(ctx, w.operation)) },
		"Operations": func(w *world, ctx context.Context) []any { return all(w.view.Operations(ctx, 0, 9)) },
		"Items": func(w *world, ctx context.Context) []any {
			return all(w.view.Items(ctx, w.operation, operation.ItemFilter{}, 0, 9))
		},
		"Breakdown": func(w *world, ctx context.Context) []any { return all(w.view.Breakdown(ctx, w.skipping(ctx))) },
		"SetRate": func(w *world, ctx context.Context) []any {
			return all(w.view.SetRate(ctx, w.now, w.operation, operation.Pace{Rate: 1}, by))
		},
		"Groups": func(w *world, ctx context.Context) []any {
			return all(w.view.Groups(ctx, w.now, failures.Filter{}, failures.Cursor{}, 9))
		},
		"TopGroups": func(w *world, ctx context.Context) []any { return all(w.view.TopGroups(ctx, w.now, 9)) },
		"Group":     func(w *world, ctx context.Context) []any { return all(w.view.Group(ctx, w.now, w.fingerprint)) },
		"NoteGroup": func(w *world, ctx context.Context) []any {
			return all(w.view.NoteGroup(ctx, w.now, w.fingerprint, hides, by))
		},
		"Audit": func(w *world, ctx context.Context) []any { return all(w.view.Audit(ctx, audit.Filter{}, 0, 99)) },
		"GroupsOf": func(w *world, ctx context.Context) []any {
			list, err := w.deadLetters(ctx)
			must(w.t, err)
			return all(w.view.GroupsOf(ctx, list.DeadLetters))
		},
		"ReplayEdited": func(w *world, ctx context.Context) []any {
			b := w.body()
			return all(w.view.ReplayEdited(ctx, w.now, w.dead, 1, job.Edit{Body: &b, Paths: []string{"$"}}, by))
		},
		"HideConflict": func(w *world, _ context.Context) []any {
			return []any{w.view.HideConflict(fmt.Errorf("wrapped: %w", &job.Conflict{Job: w.original()}))}
		},
		"OperationAndScope": func(w *world, ctx context.Context) []any {
			o, scope, err := w.view.OperationAndScope(ctx, w.operation)
			must(w.t, err)
			return []any{o, scope}
		},
		"RollUp":          func(w *world, ctx context.Context) []any { return all(w.view.RollUp(ctx, w.now, failures.Filter{}, 9)) },
		"OpenOperations":  func(w *world, ctx context.Context) []any { return all(w.view.OpenOperations(ctx)) },
		"GroupOperations": func(w *world, ctx context.Context) []any { return all(w.view.GroupOperations(ctx, w.grouped(ctx))) },
		"OperationLog":    func(w *world, ctx context.Context) []any { return all(w.view.OperationLog(ctx, w.operation, true)) },
		"NewOperation": func(w *world, ctx context.Context) []any {
			return all(w.view.NewOperation(ctx, w.now, w.request(), by))
		},
		"StartOperation": func(w *world, ctx context.Context) []any {
			return all(w.view.StartOperation(ctx, w.now, w.operation, operation.Pace{}, by))
		},
		"PauseOperation": func(w *world, ctx context.Context) []any {
			return all(w.view.PauseOperation(ctx, w.now, w.running(ctx), by))
		},
		"ResumeOperation": func(w *world, ctx context.Context) []any {
			return all(w.view.ResumeOperation(ctx, w.now, w.paused(ctx), by))
		},
		"ResumePassed": func(w *world, ctx context.Context) []any {
			return all(w.view.ResumePassed(ctx, w.now, w.passed(ctx), by))
		},
		"AbortOperation": func(w *world, ctx context.Context) []any {
			return all(w.view.AbortOperation(ctx, w.now, w.operation, by))
		},
		"SetGroup": func(w *world, ctx context.Context) []any {
			return all(w.view.SetGroup(ctx, w.now, w.fingerprint, failures.Decision{State: failures.Resolved}, by))
		},
	}
}

func all[T any](v T, err error) []any { return []any{v, err} }

func (w *world) deadLetters(ctx context.Context) (filter.DeadLetterList, error) {
	return w.view.DeadLetters(ctx, filter.Filter{}, filter.Cursor{}, 9)
}

func (w *world) refusedJob(ctx context.Context) job.Job {
	d, err := w.store.Job(ctx, w.refused)
	must(w.t, err)
	return d.Job
}

func (w *world) running(ctx context.Context) int64 {
	_, err := w.store.Operations.Start(ctx, w.now, w.operation, operation.Pace{}, by)
	must(w.t, err)
	return w.operation
}

func (w *world) paused(ctx context.Context) int64 {
	_, err := w.store.Operations.Pause(ctx, w.now, w.running(ctx), by)
	must(w.t, err)
	return w.operation
}

// passed is an operation whose canary has succeeded.
func (w *world) passed(ctx context.Context) int64 {
	w.failed(job.Delivery{})
	w.failed(job.Delivery{})
	id := w.collected()
	_, err := w.store.Operations.Start(ctx, w.now, id, operation.Pace{Canary: 1}, by)
	must(w.t, err)
	_, err = w.store.Operations.Work(ctx, func() time.Time { return w.now }, id, 1)
	must(w.t, err)
	claimed, _, err := w.store.Exchange(ctx, nil, job.Claim{Worker: "w", Now: w.now, Lease: time.Minute, Free: map[string]int{"mail": 9}})
	must(w.t, err)
	for _, j := range claimed {
		end := j.Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: w.now}, nil)
		_, _, err = w.store.Exchange(ctx, []job.Settlement{end}, job.Claim{})
		must(w.t, err)
	}
	return id
}

// grouped is the group of an operation whose filter names it and holds a secret.
func (w *world) grouped(ctx context.Context) string {
	r := w.request()
	r.Filter.Group = w.fingerprint
	_, err := w.store.Operations.New(ctx, w.now, r, by)
	must(w.t, err)
	return w.fingerprint
}

// skipping is an operation that skips a job: another one holds it.
func (w *world) skipping(ctx context.Context) int64 {
	_, err := w.store.Discard(ctx, w.now, w.dead, 1, by)
	must(w.t, err)
	o, err := w.store.Operations.New(ctx, w.now, operation.Request{Kind: operation.Replay, Named: []operation.Named{{ID: w.dead, Run: 1}}}, by)
	must(w.t, err)
	for more := true; more; {
		more, err = w.store.Operations.Collect(ctx, w.now, o.ID)
		must(w.t, err)
	}
	return o.ID
}

// told is everything that values hold, also in bytes, behind pointers and in the
// job of a conflict.
func told(values []any) string {
	var b strings.Builder
	for _, v := range values {
		tell(&b, reflect.ValueOf(v))
	}
	return b.String()
}

func tell(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			tell(b, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			tell(b, v.Field(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			tell(b, key)
			tell(b, v.MapIndex(key))
		}
	case reflect.String:
		b.WriteString(v.String() + "\n")
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			b.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			tell(b, v.Index(i))
		}
	}
}

// Whatever a method returns that may hold what a job brought along, the secret is
// not in it; and where nothing is to be hidden it is, so that the test would see it.
func TestView_HidesWhateverItReturns(t *testing.T) {
	brief := []string{"Recent", "GroupsOf"}                            // the store reads no texts for these today
	once := []string{"Breakdown", "PauseOperation", "ResumeOperation"} // these cannot be called twice in one world
	for name, call := range calls() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			open := w.showing(t, "-password")
			if slices.Contains(once, name) {
				open = newWorld(t).showing(t, "-password")
			}
			if text := told(call(open, t.Context())); !strings.Contains(text, secret) && !slices.Contains(brief, name) {
				t.Errorf("the call tells no secret, so it proves nothing: %s", text)
			}
			if text := told(call(w, t.Context())); strings.Contains(text, secret) {
				t.Errorf("it tells the secret: %s", text)
			}
		})
	}
}

// telling reports whether a type holds what a job brought along, or what was said
// of its failure.
func telling(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	for _, is := range []any{
		job.Job{}, job.Body{}, job.DeadLetter{}, job.Attempt{}, failures.Group{}, operation.Item{}, audit.Entry{},
		operation.Operation{}, filter.Filter{}, history.Detail{}, json.RawMessage{},
	} {
		if t == reflect.TypeOf(is) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Map:
		return telling(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if telling(t.Field(i).Type, seen) {
				return true
			}
		}
	case reflect.Interface: // whatever its methods return can be reached
		for i := range t.NumMethod() {
			for k := range t.Method(i).Type.NumOut() {
				if telling(t.Method(i).Type.Out(k), seen) {
					return true
				}
			}
		}
	}
	return false
}

// Each method that returns such a type is called by the test above.
func TestView_EveryTellingMethodIsCalled(t *testing.T) {
	original := []string{"Original", "Reveal", "Rewrite"} // what they return is the real thing, for what is written
	tested, of := calls(), reflect.TypeOf(&View{})
	looked := 0
	for i := range of.NumMethod() {
		m := of.Method(i)
		tells := slices.Contains([]string{"Problems", "Text", "Hits"}, m.Name)
		for k := range m.Type.NumOut() {
			tells = tells || telling(m.Type.Out(k), map[reflect.Type]bool{})
		}
		if !tells || slices.Contains(original, m.Name) {
			continue
		}
		looked++
		if tested[m.Name] == nil {
			t.Errorf("View.%s returns what may have to be hidden; add a call of it to this test", m.Name)
		}
	}
	if looked < 30 {
		t.Errorf("only %d methods were looked at", looked)
	}
}

// The store is reached by the methods of View alone.
func TestView_EmbedsNothing(t *testing.T) {
	of := reflect.TypeOf(View{})
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous || f.IsExported() {
			t.Errorf("the field %s opens what is behind the view", f.Name)
		}
	}
}
