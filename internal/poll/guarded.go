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

// What is kept of the texts of a source.
const (
	maxProblem  = 2 << 10
	maxSentence = 500
	maxVersion  = 200
	maxList     = 50 // sentences of a report
)

// keptText is a text of a source as it is kept: without secrets, and not too long. Nothing is
// looked for in what is cut off anyway; a secret that the first cut goes through is there.
func (a *attached) keptText(text string, most int) string {
	return clip.Text(a.hide(clip.Text(text, 2*most+maxProblem)), most)
}

// brief is a report as it is kept.
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

// answer is an error of a source. All other errors are of this side.
type answer struct{ error }

// Unwrap returns what the source's driver said.
func (e answer) Unwrap() error { return e.error }

// fromSource reports whether the source is to blame for an error.
func fromSource(err error) bool {
	_, ok := errors.AsType[answer](err)
	return ok
}

// guarded is the origin of a source. Its errors say that they are the source's, and a panic
// in its driver is such an error.
type guarded struct {
	source.Origin
	log *slog.Logger
}

// connect opens the origin.
func (a *attached) connect(ctx context.Context) (*guarded, error) {
	origin, err := ask(a.log, func() (source.Origin, error) { return a.Open(ctx) })
	if err != nil {
		return nil, err
	}

	return &guarded{origin, a.log}, nil
}

// ask asks an origin.
func ask[T any](log *slog.Logger, do func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("The driver of a source ended in a panic. Please report it.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the driver does not understand what the source answers: %v", p)
		}

		if err != nil {
			err = answer{err}
		}
	}()

	return do()
}

// Check is that of the origin.
func (g *guarded) Check(ctx context.Context) (source.Report, error) {
	return ask(g.log, func() (source.Report, error) { return g.Origin.Check(ctx) })
}

// Scan is that of the origin.
func (g *guarded) Scan(ctx context.Context, after string, limit int) (source.Page, error) {
	return ask(g.log, func() (source.Page, error) { return g.Origin.Scan(ctx, after, limit) })
}

// Act is that of the origin.
func (g *guarded) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	return ask(g.log, func() ([]source.Result, error) { return g.Origin.Act(ctx, acts) })
}

// Find is that of the origin.
func (g *guarded) Find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	return ask(g.log, func() ([]source.Result, error) { return g.Origin.Find(ctx, acts) })
}

// Succeeded is that of the origin.
func (g *guarded) Succeeded(ctx context.Context, returned []source.ReplayedJob) ([]source.Success, error) {
	return ask(g.log, func() ([]source.Success, error) { return g.Origin.Succeeded(ctx, returned) })
}

// Close is that of the origin.
func (g *guarded) Close() error {
	_, err := ask(g.log, func() (struct{}, error) { return struct{}{}, g.Origin.Close() })
	return err
}
