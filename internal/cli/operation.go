package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/client"
	"redrive/internal/operation"
)

// watcher is a command that has begun an operation and watches it. Each answer of
// the dashboard replaces what it knows.
type watcher struct {
	console.Console
	dashboard *client.Client
	kind      operation.Kind
	live      bool // the output is a terminal, on which a line can be drawn again
	now       work.OperationDetail
	printed   string // the newest line of progress
}

// begin makes the operation and waits for its preview.
func (w *watcher) begin(ctx context.Context, filter string) error {
	ask := work.NewOperation{Kind: w.kind, Filter: &filter}
	if err := w.dashboard.Call(ctx, http.MethodPost, "operations", ask, &w.now); err != nil {
		return err
	}

	for w.now.Operation.State == operation.Collecting {
		switch err := w.look(ctx, 200*time.Millisecond); {
		case err != nil && ctx.Err() != nil:
			return errors.Join(errors.New("interrupted before the preview; nothing was done"), w.post("abort", nil))
		case err != nil:
			return err
		}
	}

	return nil
}

// look waits, and then asks the dashboard how far the operation is.
func (w *watcher) look(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}

	return w.dashboard.Call(ctx, http.MethodGet, w.path(""), nil, &w.now)
}

// path is the path of the operation in the API, or of an act on it.
func (w *watcher) path(act string) string {
	return strings.TrimSuffix(fmt.Sprintf("operations/%d/%s", w.now.Operation.ID, act), "/")
}

// post acts on the operation, whether or not the user has interrupted the command.
func (w *watcher) post(act string, body any) error {
	return w.dashboard.Call(context.Background(), http.MethodPost, w.path(act), body, &w.now)
}

// causeName is the class of a cause and the type of its jobs.
func causeName(c work.Cause) string {
	if c.Class == "" {
		return console.Printable(cmp.Or(c.Type, "a job that was removed"))
	}
	return console.Printable(c.Class) + ", " + console.Printable(c.Type)
}
