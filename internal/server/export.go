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

	"redrive/internal/job"
)

// An export is the list of the current filter as a file. It is written page by
// page, each from its own short look at the database, so that a large export
// neither holds a snapshot for long nor fills the memory. What changes meanwhile
// may be missed or be there in its newer state, never twice.
const (
	exportPage  = 50 // jobs are read with their payloads, of up to a megabyte each
	exportLimit = 100_000
)

// exporter writes jobs in one format.
type exporter interface {
	kind() string // the media type
	begin() error
	job(job.Job) error
	end(why string) error // why is empty when nothing is missing
}

func (s *Server) exportCSV(c echo.Context) error {
	return s.export(c, "csv", &csvExport{w: csv.NewWriter(c.Response())})
}

func (s *Server) exportNDJSON(c echo.Context) error {
	return s.export(c, "ndjson", ndjsonExport{c.Response()})
}

func (s *Server) export(c echo.Context, suffix string, to exporter) error {
	f, after, wrong := query(c.QueryParams())
	if len(wrong) > 0 {
		return inAddress(wrong[0])
	}
	now := time.Now()
	h := c.Response().Header()
	h.Set("Content-Type", to.kind())
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="jobs-%s.%s"`, now.UTC().Format("20060102-150405"), suffix))
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	// A reader who left is noticed by the next write; the deadline of a request
	// would cut a long export short.
	ctx := context.WithoutCancel(c.Request().Context())
	count, err := s.stream(ctx, http.NewResponseController(c.Response()), to, f, after)
	audit := s.Store.RecordAudit(ctx, job.Entry{
		At: now, Actor: s.actor("dashboard", c), Action: "export", Subject: suffix, Filter: f.String(), Count: int64(count),
	})
	if err != nil {
		s.Log.Warn("An export ended early.", "request", requestID(c), "jobs", count, "error", err)
	}
	if audit != nil {
		s.Log.Error("An export could not be written into the audit log.", "request", requestID(c), "error", audit)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // a file that looks whole must not be half of one
	}
	return nil
}

// stream writes the jobs and returns how many they were.
func (s *Server) stream(ctx context.Context, out *http.ResponseController, to exporter, f job.Filter, after job.Cursor) (count int, err error) {
	if err := to.begin(); err != nil {
		return 0, err
	}
	for {
		if err := out.SetWriteDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return count, err
		}
		page, err := s.Store.WholeJobs(ctx, f, after, min(exportPage, exportLimit-count))
		slow, err := tolerate(err)
		if err != nil {
			return count, err
		}
		for _, j := range page.Jobs {
			if err := to.job(j); err != nil {
				return count, err
			}
			count++
		}
		after = page.Next
		switch {
		case after == job.Cursor{} && slow:
			return count, to.end("a search took longer than 2 s: more jobs may match; narrow the filter")
		case after == job.Cursor{}:
			return count, to.end("")
		case count == exportLimit:
			return count, to.end(fmt.Sprintf("%d jobs are the limit of an export; go on with after=%s", exportLimit, after))
		}
		if err := out.Flush(); err != nil {
			return count, err
		}
	}
}

// ndjsonExport writes each job as the API does, a line each.
type ndjsonExport struct{ w io.Writer }

func (e ndjsonExport) kind() string { return "application/x-ndjson" }
func (e ndjsonExport) begin() error { return nil }

func (e ndjsonExport) job(j job.Job) error {
	_, err := e.w.Write(append(encodeJob(j, true), '\n'))
	return err
}

func (e ndjsonExport) end(why string) error {
	if why == "" {
		return nil
	}
	_, err := e.w.Write(object("incomplete", encode(why)))
	return err
}

// csvExport writes each job as a row, under the names of the API.
type csvExport struct{ w *csv.Writer }

func (e *csvExport) kind() string { return "text/csv; charset=utf-8" }

func (e *csvExport) begin() error {
	return e.w.Write([]string{
		"id", "type", "queue", "status", "reason", "error_type", "error_message", "attempts", "run", "priority",
		"enqueued_at", "changed_at", "run_at", "finished_at", "payload", "meta",
	})
}

func (e *csvExport) job(j job.Job) error {
	row := []string{
		j.ID, j.Type, j.Queue, string(j.Status()), string(j.Reason), j.Error.Type, j.Error.Message,
		strconv.Itoa(j.Attempts), strconv.Itoa(j.Run), strconv.Itoa(j.Priority),
		job.FormatTime(j.EnqueuedAt), job.FormatTime(j.ChangedAt), job.FormatTime(j.RunAt), job.FormatTime(j.FinishedAt),
		strings.ToValidUTF8(string(j.Payload), "\uFFFD"), strings.ToValidUTF8(string(bytes.TrimSpace(j.Meta)), "\uFFFD"),
	}
	for i, cell := range row {
		row[i] = harmless(cell)
	}
	if err := e.w.Write(row); err != nil {
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
