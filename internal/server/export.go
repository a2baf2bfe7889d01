package server

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// An export is a list as a file. It is written page by page, each from its own
// short look at the database, so that a large export neither holds a snapshot
// for long nor fills the memory. What changes meanwhile may be missed or be
// there in its newer state, never twice.
const (
	exportPage  = 50 // jobs are read with their payloads; many large ones make a shorter page
	exportLimit = 100_000
	maxExports  = 4 // files that are written at once
)

// sheet is a list that is exported.
type sheet struct {
	name   string   // of the list, as the file is called
	filter string   // what it was narrowed to, for the audit log
	head   []string // the names of its columns
	next   func(context.Context) (leaf, error)
}

// leaf is the next page of a sheet.
type leaf struct {
	rows []row
	more bool
	stop string // why the file ends here although there may be more
}

// row is what is exported, in either format.
type row interface {
	line() []byte
	cells() []string
}

// leafOf is a page that was found, in time or not.
func leafOf[T any, R row](found []T, as func(T) R, more, slow bool) leaf {
	l := leaf{more: more}
	for _, x := range found {
		l.rows = append(l.rows, as(x))
	}
	if slow && !more {
		l.stop = "a search took longer than 2 s: more may match; narrow the filter"
	}
	return l
}

// exporter writes the rows of a sheet in one format.
type exporter interface {
	ending() string
	kind() string // the media type
	begin(head []string) error
	row(row) error
	end(why string) error // why is empty when nothing is missing
}

// exportRoutes are a sheet in every format.
func (s *Server) exportRoutes(path string, of func(echo.Context) (sheet, error)) {
	s.get(path+".csv", access.View, func(c echo.Context) error {
		return s.export(c, &csvExport{csv.NewWriter(c.Response())}, of)
	})
	s.get(path+".ndjson", access.View, func(c echo.Context) error {
		return s.export(c, ndjsonExport{c.Response()}, of)
	})
}

// export answers with a sheet as a file. What keeps it from beginning is an
// answer like any other; what ends it early ends the connection.
func (s *Server) export(c echo.Context, to exporter, of func(echo.Context) (sheet, error)) error {
	sh, err := of(c)
	if err != nil {
		return err
	}
	release, err := place(c.Request().Context(), s.exports, "other exports are being written; try again")
	if err != nil {
		return err
	}
	defer release()
	first, err := sh.next(c.Request().Context())
	if err != nil {
		return err
	}
	now, h := time.Now(), c.Response().Header()
	h.Set("Content-Type", to.kind())
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s.%s"`, sh.name, now.UTC().Format("20060102-150405"), to.ending()))
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	// A reader who left is noticed by the next write; the deadline of a request
	// would cut a long export short.
	ctx := context.WithoutCancel(c.Request().Context())
	count, err := stream(ctx, http.NewResponseController(c.Response()), to, sh, first)
	audit := s.View.Record(ctx, audit.Entry{
		At: now, Actor: s.actor("dashboard", c), Action: audit.Export, Subject: sh.name + "." + to.ending(), Filter: sh.filter, Count: count,
	})
	if audit != nil {
		s.Log.Error("An export could not be written into the audit log.", "request", requestID(c), "error", audit)
	}
	if err != nil {
		s.Log.Warn("An export ended early.", "request", requestID(c), "rows", count, "error", err)
		panic(http.ErrAbortHandler) // a file that looks whole must not be half of one
	}
	return nil
}

// stream writes the pages of a sheet and returns how many rows they had.
func stream(ctx context.Context, out *http.ResponseController, to exporter, sh sheet, page leaf) (count int64, err error) {
	if err := to.begin(sh.head); err != nil {
		return 0, err
	}
	for {
		if err := out.SetWriteDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return count, err
		}
		for _, r := range page.rows {
			if err := to.row(r); err != nil {
				return count, err
			}
			count++
		}
		if page.stop != "" || !page.more {
			return count, to.end(page.stop)
		}
		if err := out.Flush(); err != nil {
			return count, err
		}
		if page, err = sh.next(ctx); err != nil {
			return count, err
		}
	}
}

// jobSheet is the list of jobs that the address selects.
func (s *Server) jobSheet(c echo.Context) (sheet, error) {
	f, after, wrong := query(c.QueryParams())
	if len(wrong) > 0 {
		return sheet{}, inAddress(wrong[0])
	}
	left := exportLimit
	next := func(ctx context.Context) (leaf, error) {
		page, err := s.View.WholeJobs(ctx, f, after, min(exportPage, left))
		slow, err := tolerate(err)
		if err != nil {
			return leaf{}, err
		}
		after, left = page.Next, left-len(page.Jobs)
		l := leafOf(page.Jobs, func(j job.Job) jobRow { return jobRow{j} }, after != filter.Cursor{}, slow)
		switch {
		case slow && f.Searches() && s.View.Reindexing():
			l.stop = "the search index is filled anew: export once more in a while"
		case l.more && left == 0:
			l.stop = fmt.Sprintf("%d jobs are the limit of an export; go on with after=%s", exportLimit, after)
		}
		return l, nil
	}
	return sheet{name: "jobs", filter: f.String(), head: jobHead(), next: next}, nil
}

// jobRow is a job as the API shows it.
type jobRow struct{ job.Job }

func jobHead() []string {
	return []string{
		"id", "type", "queue", "status", "reason", "error_type", "error_message", "attempts", "run", "priority",
		"enqueued_at", "changed_at", "run_at", "finished_at", "payload", "meta",
	}
}

func (j jobRow) line() []byte { return encodeJob(j.Job, true) }

func (j jobRow) cells() []string {
	return []string{
		j.ID, j.Type, j.Queue, string(j.Status()), string(j.Reason), j.Error.Type, j.Error.Message,
		strconv.Itoa(j.Attempts), strconv.Itoa(j.Run), strconv.Itoa(j.Priority),
		wire.FormatTime(j.EnqueuedAt), wire.FormatTime(j.ChangedAt), wire.FormatTime(j.RunAt), wire.FormatTime(j.FinishedAt),
		strings.ToValidUTF8(string(j.Payload), "\uFFFD"), strings.ToValidUTF8(string(bytes.TrimSpace(j.Meta)), "\uFFFD"),
	}
}

// ndjsonExport writes each row as the API does, a line each.
type ndjsonExport struct{ w io.Writer }

func (e ndjsonExport) ending() string       { return "ndjson" }
func (e ndjsonExport) kind() string         { return "application/x-ndjson" }
func (e ndjsonExport) begin([]string) error { return nil }

func (e ndjsonExport) row(r row) error {
	_, err := e.w.Write(append(r.line(), '\n'))
	return err
}

func (e ndjsonExport) end(why string) error {
	if why == "" {
		return nil
	}
	_, err := e.w.Write(object("incomplete", encode(why)))
	return err
}

// csvExport writes each row under the names of the API.
type csvExport struct{ w *csv.Writer }

func (e *csvExport) ending() string            { return "csv" }
func (e *csvExport) kind() string              { return "text/csv; charset=utf-8" }
func (e *csvExport) begin(head []string) error { return e.w.Write(head) }

func (e *csvExport) row(r row) error {
	cells := r.cells()
	for i, cell := range cells {
		cells[i] = harmless(cell)
	}
	if err := e.w.Write(cells); err != nil {
		return err
	}
	e.w.Flush()
	return e.w.Error()
}

func (e *csvExport) end(why string) error {
	if why != "" {
		if err := e.w.Write([]string{"incomplete: " + why}); err != nil {
			return err
		}
	}
	e.w.Flush()
	return e.w.Error()
}

// harmless keeps a spreadsheet from taking a cell for a formula.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
