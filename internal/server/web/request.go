package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/server/problem"
)

// MaxSmall is how many bytes a small form or body may have.
const MaxSmall = 64 << 10

// ReadForm reads a small form.
func ReadForm(c echo.Context) error { return ReadFormOf(c, MaxSmall) }

// ReadFormOf reads a form of at most limit bytes. A second call does nothing.
func ReadFormOf(c echo.Context, limit int64) error {
	r := c.Request()
	if r.PostForm != nil {
		return nil
	}

	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, echo.MIMEApplicationForm) {
		return problem.New(problem.MediaType, "send the fields as a form")
	}

	if err := checkEncoding(r); err != nil {
		return err
	}

	r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)

	err := r.ParseForm()
	if err == nil || errors.As(err, new(*http.MaxBytesError)) || errors.As(err, new(*problem.Problem)) {
		return err
	}

	return problem.New(problem.Malformed, "the form cannot be read")
}

// Received reads a body of at most limit bytes, whatever they are.
func Received(c echo.Context, limit int64) ([]byte, error) {
	r := c.Request()
	if err := checkEncoding(r); err != nil {
		return nil, err
	}

	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}

	data, err := readAll(http.MaxBytesReader(c.Response(), r.Body, limit), r.ContentLength)
	if err != nil {
		return nil, unreadable(err)
	}

	return data, nil
}

// ContentType is the kind of a body, without its parameters.
func ContentType(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}

	return kind
}

// checkEncoding refuses a compressed body: a small one can unpack to more than
// the memory holds.
func checkEncoding(r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return problem.New(problem.MediaType, "send the body as it is, without a Content-Encoding")
	}
	return nil
}

// readAll reads a body whose length may have been declared. The declaration
// alone takes no memory: the buffer grows with what has arrived, and never beyond
// what was declared.
func readAll(r io.Reader, length int64) ([]byte, error) {
	const first = 4 << 10

	data := make([]byte, 0, first)
	for {
		if len(data) == cap(data) {
			grown := 2 * cap(data)
			if declared := int(length) + 1; declared > cap(data) { // one more shows the end
				grown = min(grown, declared)
			}

			data = append(make([]byte, 0, grown), data...)
		}

		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return data, err
		}
	}
}

// unreadable says why a body did not arrive. That is the fault of its sender, so
// it is never an internal error.
func unreadable(err error) error {
	switch {
	case errors.As(err, new(*http.MaxBytesError)), errors.As(err, new(*problem.Problem)):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return problem.New(problem.Malformed, "the body ended early")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.New(problem.Malformed, "the body did not arrive in time")
	}

	return problem.New(problem.Malformed, "the body cannot be read")
}

// ParamID is the job that the address names.
func ParamID(c echo.Context) (string, error) {
	id, err := job.ParseID(c.Param("id"))
	return id, problem.InAddress(err)
}

// ParamOperation is the operation that the address names.
func ParamOperation(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, problem.In(problem.BadParameter, "id", "is not the number of an operation")
	}

	return id, nil
}

// Number is a number in the query of the address, 0 when there is none.
func Number(c echo.Context, name string) (int64, error) {
	text := c.QueryParam(name)
	if text == "" {
		return 0, nil
	}

	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, problem.In(problem.BadParameter, name, "is not a number that a list returned")
	}

	return n, nil
}

// Query reads the filter and the cursor of a list of jobs, and returns what is
// wrong with each field. The filter is the text of q combined with the
// parameters that have the names of its qualifiers; see [ListParameters].
func Query(values url.Values) (f filter.Filter, after filter.Cursor, wrong []*invalid.Error) {
	now := time.Now()
	check := func(err error) {
		if err != nil {
			wrong = append(wrong, fieldOf(err))
		}
	}
	f, err := filter.Parse(values.Get("q"), now)
	check(err)

	for _, q := range filter.Qualifiers() {
		f, err = f.With(q.Name, values.Get(q.Name), now)
		check(err)
	}

	if len(wrong) == 0 {
		check(f.Check())
	}

	after, err = filter.ParseCursor(values.Get("after"))
	check(err)

	return f, after, wrong
}

// fieldOf attributes an error to a field of a filter. An error about no field is
// about everything that was typed, since half of a filter would be another
// filter.
func fieldOf(err error) *invalid.Error {
	if field := new(invalid.Error); errors.As(err, &field) {
		return field
	}
	return &invalid.Error{Field: "q", Problem: err.Error()}
}

// DeadLettersQuery is Query for the list of dead letters, whose filter leaves the
// state out.
func DeadLettersQuery(values url.Values) (f filter.Filter, after filter.Cursor, wrong []*invalid.Error) {
	f, after, wrong = queryOf(values, job.StatusDeadLetter, "dead letter")
	f.Status = ""
	return f, after, wrong
}

// TrashQuery is Query for the trash.
func TrashQuery(values url.Values) (f filter.Filter, after filter.Cursor, wrong []*invalid.Error) {
	return queryOf(values, job.StatusTrashed, "discarded job")
}

// queryOf is Query for a list whose rows are all in one state.
func queryOf(values url.Values, only job.Status, row string) (f filter.Filter, after filter.Cursor, wrong []*invalid.Error) {
	f, after, wrong = Query(values)
	if f.Status != "" && f.Status != only {
		wrong = append(wrong, &invalid.Error{Field: "q", Problem: fmt.Sprintf(
			"state: this list has only %ss; look for %s jobs in the list of jobs", row, f.Status)})
	}

	f.Status = only

	return f, after, wrong
}

// TypedGroups is the filter of a list of error groups as it was typed.
func TypedGroups(values url.Values) failures.Filter {
	return failures.Filter{
		State: failures.State(values.Get("state")), Queue: values.Get("queue"), Source: values.Get("source"), Type: values.Get("type"),
		Class: values.Get("class"), Text: strings.TrimSpace(values.Get("q")), Sort: failures.Sort(values.Get("sort")),
	}
}

// GroupQuery reads the filter and the cursor of a list of error groups, and
// returns what is wrong with each field. A wrong field is taken out of the
// filter, so that no link of the page leads to it again.
func GroupQuery(values url.Values) (f failures.Filter, after failures.Cursor, wrong []*invalid.Error) {
	f = TypedGroups(values)
	for err := f.Check(); err != nil; err = f.Check() {
		field := fieldOf(err)

		wrong = append(wrong, field)

		was := f

		f = f.Without(field.Field)
		if f == was { // it is about none of them
			f = failures.Filter{}
		}
	}

	after, err := failures.ParseCursor(values.Get("after"))
	if err != nil {
		wrong = append(wrong, fieldOf(err))
	}

	return f, after, wrong
}

// AuditQuery reads the filter of the audit log. Those who may not manage see
// only their own reveals and logins.
func AuditQuery(c echo.Context) (f audit.Filter, after int64, err error) {
	f = audit.Filter{
		Actor: c.QueryParam("actor"), Action: c.QueryParam("action"), Subject: c.QueryParam("subject"), Own: ownOnly(c),
	}

	f.From, err = paramTime(c, "from")
	if err != nil {
		return f, 0, err
	}

	f.To, err = paramTime(c, "to")
	if err != nil {
		return f, 0, err
	}

	after, err = Number(c, "after")
	if err != nil {
		return f, 0, err
	}

	return f, after, f.Check()
}

// paramTime is a time in the query of the address, zero when there is none.
func paramTime(c echo.Context, name string) (time.Time, error) {
	text := c.QueryParam(name)
	if text == "" {
		return time.Time{}, nil
	}

	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &invalid.Error{Field: name, Problem: fmt.Sprintf("%q is not a time such as 2026-03-12T14:02:11Z", clip.Text(text, 64))}
	}

	return at.UTC(), nil
}

// ItemQuery reads which items of an operation to show.
func ItemQuery(c echo.Context) (operation.ItemFilter, error) {
	text := c.QueryParam("state")
	switch o := operation.RunOutcome(text); o {
	case operation.RunSucceeded, operation.RunRelapsed, operation.RunDropped, operation.RunUnknown, operation.RunUnsettled:
		return operation.ItemFilter{Outcome: o}, nil
	}

	switch s := operation.ItemState(text); s {
	case "", operation.ItemPending, operation.ItemDone, operation.ItemSkipped, operation.ItemFailed:
		return operation.ItemFilter{State: s}, nil
	}

	return operation.ItemFilter{}, problem.In(problem.BadParameter, "state",
		"is unknown; use pending, done, skipped, failed, succeeded, relapsed, dropped, unknown or unsettled")
}
