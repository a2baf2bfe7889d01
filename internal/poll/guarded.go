package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"redrive/internal/clip"
	"redrive/internal/source"
)

// How much is kept of the texts of a source, in bytes unless said otherwise.
const (
	maxProblem  = 2 << 10
	maxSentence = 500
	maxVersion  = 200
	maxList     = 50 // sentences in a list of a report
)

// keptText returns a text of a source as it is kept: with its secrets hidden, and cut to limit
// bytes. The text is first cut to a larger size, so that no time is spent on searching what will
// not be kept. A secret that the first cut divides is beyond limit, and so is cut off later.
func (a *attached) keptText(text string, limit int) string {
	return clip.Text(a.hide(clip.Text(text, 2*limit+maxProblem)), limit)
}

// brief returns a report as it is kept: with its secrets hidden, and its texts and lists cut.
func (a *attached) brief(r source.Report) source.Report {
	sentences := func(all []string) (kept []string) {
		for _, s := range all[:min(len(all), maxList)] {
			kept = append(kept, a.keptText(s, maxSentence))
		}
		return kept
	}

	r.Version, r.Shared = a.keptText(r.Version, maxVersion), a.keptText(r.Shared, maxSentence)
	r.Sees, r.Warnings = sentences(r.Sees), sentences(r.Warnings)

	return r
}

// sourceError marks an error that came from a source. All other errors are Redrive's own.
type sourceError struct{ error }

// Unwrap returns the error of the source's driver.
func (e sourceError) Unwrap() error { return e.error }

// fromSource reports whether an error came from a source.
func fromSource(err error) bool {
	_, ok := errors.AsType[sourceError](err)
	return ok
}

// guarded is the origin of a source whose errors are marked as sourceErrors. A panic in the driver
// becomes such an error, too.
type guarded struct {
	source.Origin
	log *slog.Logger
}

// connect connects to the source.
func (a *attached) connect(ctx context.Context) (*guarded, error) {
	origin, err := ask(a.log, func() (source.Origin, error) { return a.Open(ctx) })
	if err != nil {
		return nil, err
	}

	return &guarded{origin, a.log}, nil
}

// ask calls the driver of a source. It marks the error, and turns a panic into one.
func ask[T any](log *slog.Logger, do func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("The driver of a source ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the driver does not understand what the source answers: %v", p)
		}

		if err != nil {
			err = sourceError{err}
		}
	}()

	return do()
}

// Check calls Check of the origin, guarded by ask. So do the methods below.
func (g *guarded) Check(ctx context.Context) (source.Report, error) {
	return ask(g.log, func() (source.Report, error) { return g.Origin.Check(ctx) })
}

// Scan calls Scan of the origin.
func (g *guarded) Scan(ctx context.Context, after string, limit int) (source.Page, error) {
	return ask(g.log, func() (source.Page, error) { return g.Origin.Scan(ctx, after, limit) })
}

// Act calls Act of the origin.
func (g *guarded) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	return ask(g.log, func() ([]source.Result, error) { return g.Origin.Act(ctx, acts) })
}

// Find calls Find of the origin.
func (g *guarded) Find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	return ask(g.log, func() ([]source.Result, error) { return g.Origin.Find(ctx, acts) })
}

// Succeeded calls Succeeded of the origin.
func (g *guarded) Succeeded(ctx context.Context, returned []source.ReplayedJob) ([]source.Success, error) {
	return ask(g.log, func() ([]source.Success, error) { return g.Origin.Succeeded(ctx, returned) })
}

// Close calls Close of the origin.
func (g *guarded) Close() error {
	_, err := ask(g.log, func() (struct{}, error) { return struct{}{}, g.Origin.Close() })
	return err
}
