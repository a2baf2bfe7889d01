package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/server/limit"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// An export is a list as a file. It is written page by page, each from its own
// short look at the database, so that a large export neither holds a snapshot
// for long nor fills the memory. What changes meanwhile may be missed or be
// there in its newer state, never twice.
const (
	jobsAtOnce    = 50  // are read with their payloads; many large ones make a shorter page
	entriesAtOnce = 500 // of the audit log
	itemsAtOnce   = 200 // of an operation
	groupsAtOnce  = 100 // with what they say of each hour
	exportLimit   = 100_000
)

// export is a list that is exported.
type export struct {
	name    string   // of the list, as the file is called
	filter  string   // what it was narrowed to, for the audit log
	columns []string // their names
	next    func(context.Context) (exportPage, error)
}

// exportPage is one page of an export.
type exportPage struct {
	rows []row
	more bool
	stop string // why the file ends here although there may be more
}

// row is a row of an export in both formats.
type row struct {
	json  []byte
	cells []string
}

// pageOf makes a page of what was found. A search that ran out of time ends the
// file, and the file says so.
func pageOf[T any](found []T, as func(T) row, more, slow bool) exportPage {
	p := exportPage{more: more}
	for _, x := range found {
		p.rows = append(p.rows, as(x))
	}

	if slow && !more {
		p.stop = "a search took longer than 2 s: more may match; narrow the filter"
	}

	return p
}

// format writes a row.
type format func(row) error

// files are the endpoints of an export in every format.
func (a *API) files(path, what string, row any, of func(echo.Context) (export, error), parameters ...string) []Endpoint {
	file := func(ending, title, kind string, as func(io.Writer) format) Endpoint {
		return Endpoint{
			Method:     http.MethodGet,
			Path:       path + "." + ending,
			Need:       access.View,
			Says:       "Writes " + what + " as " + title + ", which the audit log records",
			Parameters: parameters,
			Answers:    []any{row},
			Kind:       kind,
			file:       true,
			handle:     func(c echo.Context) error { return a.write(c, of, ending, kind, as) },
		}
	}

	return []Endpoint{
		file("csv", "CSV", "text/csv; charset=utf-8", asCSV),
		file("ndjson", "NDJSON", "application/x-ndjson", asNDJSON),
	}
}

// write answers with an export as a file. An error before the first row is
// answered like any other. Afterwards the connection is cut, so that no client
// takes half a file for a whole one.
func (a *API) write(c echo.Context, of func(echo.Context) (export, error), ending, kind string, as func(io.Writer) format) error {
	e, err := of(c)
	if err != nil {
		return err
	}

	release, err := a.Limits.Turn(c, web.LimitExports, a.Limits.Exports, "other exports are being written; try again")
	if err != nil {
		return err
	}
	defer release()

	first, err := e.next(c.Request().Context())
	if err != nil {
		return err
	}

	head := c.Request().Method == http.MethodHead
	taken := audit.Entry{At: time.Now(), Actor: web.Actor(c), Action: audit.Export, Subject: e.name + "." + ending, Filter: e.filter}
	if !head {
		if err := a.recordExport(c.Request().Context(), taken, first); err != nil {
			return err
		}
	}

	h := c.Response().Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s.%s"`, e.name, taken.At.UTC().Format("20060102-150405"), ending))
	c.Response().WriteHeader(http.StatusOK)

	if head {
		return nil
	}
	// A reader who left is noticed by the next write; the deadline of a request
	// would cut a long export short.
	ctx, out := context.WithoutCancel(c.Request().Context()), limit.NewWriter(c.Response())
	taken.Count, err = stream(ctx, out, as(out), e, first)
	if first.more {
		if err := a.View.Record(ctx, taken); err != nil {
			a.Log.Error("The end of an export could not be recorded in the audit log; its beginning is recorded.",
				"request", web.RequestID(c), "rows", taken.Count, "error", err)
		}
	}

	if err != nil {
		a.Log.Warn("An export ended early.", "request", web.RequestID(c), "rows", taken.Count, "error", err)
		panic(http.ErrAbortHandler) // a file that looks whole must not be half of one
	}

	return nil
}

// recordExport writes an export into the audit log before the first row goes out, so
// that no one takes a list away unseen. How many rows a long one has is known
// only at its end, and is a second entry.
func (a *API) recordExport(ctx context.Context, taken audit.Entry, first exportPage) error {
	taken.Count = int64(len(first.rows))
	if first.more {
		taken.Action, taken.Count = audit.ExportBegin, 0
	}

	return a.View.Record(ctx, taken)
}

// stream writes the pages of an export and returns how many rows they had.
func stream(ctx context.Context, out *limit.Writer, to format, e export, p exportPage) (count int64, err error) {
	// The header: CSV has one, and NDJSON leaves it out.
	if err := to(row{cells: e.columns}); err != nil {
		return 0, err
	}

	for {
		for _, r := range p.rows {
			if err := to(r); err != nil {
				return count, err
			}

			count++
		}

		// A file that is incomplete says so in its last row.
		if p.stop != "" {
			return count, to(incomplete(p.stop))
		}

		if !p.more {
			return count, nil
		}

		// The client gets this page before the next one is read.
		if err := out.Flush(); err != nil {
			return count, err
		}

		p, err = e.next(ctx)
		if err != nil {
			return count, err
		}
	}
}

// incomplete is the last row of a file that ends before the list does.
func incomplete(why string) row {
	return row{apitype.Encode(apitype.Incomplete{Incomplete: why}), []string{"incomplete: " + why}}
}

// exportJobs is the list of jobs that the address selects, in the order in which the
// page and the API list it.
func (a *API) exportJobs(c echo.Context) (export, error) {
	f, after, wrong := web.Query(c.QueryParams())
	if len(wrong) > 0 {
		return export{}, problem.InAddress(wrong[0])
	}

	left, seen := exportLimit, map[int64]bool{}
	next := func(ctx context.Context) (exportPage, error) {
		found, slow, err := web.InTime(a.View.WholeJobs(ctx, f, after, min(jobsAtOnce, left)))
		if err != nil {
			return exportPage{}, err
		}

		after, left = found.Next, left-len(found.Jobs)

		// Read from its oldest end or by what runs next, a list meets a job again that
		// was moved meanwhile to where it has not been yet.
		if f.Order() != filter.Newest {
			found.Jobs = slices.DeleteFunc(found.Jobs, func(j job.Job) bool {
				again := seen[j.Seq]
				seen[j.Seq] = true
				return again
			})
		}

		p := pageOf(found.Jobs, jobRow, after != filter.Cursor{}, slow)
		switch {
		case slow && f.Searches() && a.View.Reindexing():
			p.stop = "the search index is being rebuilt; export again later"
		case p.more && left == 0:
			p.stop = fmt.Sprintf("an export has at most %d jobs; continue with after=%s", exportLimit, after)
		}

		return p, nil
	}

	return export{"jobs", f.String(), []string{
		"id", "type", "queue", "status", "reason", "error_type", "error_message", "attempts", "run", "priority",
		"enqueued_at", "changed_at", "run_at", "finished_at", "payload", "meta",
	}, next}, nil
}

// jobRow is a job in both formats. The text in the cells must be valid UTF-8,
// unlike a payload.
func jobRow(j job.Job) row {
	return row{apitype.Encode(fullJobOf(j)), []string{
		j.ID, j.Type, j.Queue, string(j.Status()), string(j.Reason), j.Error.Type, j.Error.Message,
		cell(reportedNumber(j, j.Attempts)), strconv.Itoa(j.Run), cell(reportedValue(j, j.Priority)),
		wire.FormatTime(j.EnqueuedAt), wire.FormatTime(j.ChangedAt), wire.FormatTime(j.RunAt), wire.FormatTime(j.FinishedAt),
		strings.ToValidUTF8(string(j.Payload), "\uFFFD"), strings.ToValidUTF8(string(bytes.TrimSpace(j.Meta)), "\uFFFD"),
	}}
}

// cell is a number that may not be known: the cell is empty then.
func cell(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// exportItems is the items of an operation, in processing order.
func (a *API) exportItems(c echo.Context) (export, error) {
	id, f, err := a.paramItems(c)
	if err != nil {
		return export{}, err
	}

	after, err := web.Number(c, "after")
	if err != nil {
		return export{}, err
	}

	next := func(ctx context.Context) (exportPage, error) {
		found, err := a.View.Items(ctx, id, f, after, itemsAtOnce)
		after = found.Next
		return pageOf(found.Items, asRow(itemOf), after != 0, false), err
	}

	e := export{name: fmt.Sprintf("operation-%d-items", id), columns: apitype.Columns(work.OperationItem{}), next: next}
	if state := c.QueryParam("state"); state != "" {
		e.filter = "state:" + state
	}

	return e, nil
}

// asRow makes a row of what the API shows of an item; its members become the
// cells.
func asRow[T, A any](shown func(T) A) func(T) row {
	return func(item T) row {
		a := shown(item)
		return row{apitype.Encode(a), apitype.Cells(a)}
	}
}
