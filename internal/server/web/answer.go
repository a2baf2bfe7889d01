package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/fault"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/rules"
	"redrive/internal/server/view"
	"redrive/internal/wire"
)

// WantsJSON reports whether the answer is for a program.
func WantsJSON(r *http.Request) bool {
	return r.URL.Path == "/live" || strings.HasPrefix(r.URL.Path, "/api/") || strings.Contains(r.Header.Get("Accept"), "application/json")
}

// IsForm reports whether a route belongs to the pages, whose acts are forms, and
// not to the API.
func IsForm(c echo.Context) bool { return !strings.HasPrefix(c.Path(), "/api/") }

// IsRead reports whether a request changes nothing.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// RequestID names a request, in its answer and in the log.
func RequestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// LastSegment is the last part of a route.
func LastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Done answers a form: in place when a script asks, otherwise by redirecting the
// browser to the page with the form.
func Done(c echo.Context, elsewhere string, says ...any) error {
	if WantsJSON(c.Request()) {
		return c.JSONBlob(http.StatusOK, Object(says).Encode())
	}
	if page, ok := LocalPath(c.FormValue("back")); ok {
		elsewhere = page
	}
	return c.Redirect(http.StatusSeeOther, elsewhere)
}

// Download sends the exact bytes of something as a file. They are never shown as
// a page, whatever is in them.
func Download(c echo.Context, name, kind string, data []byte) error {
	suffix := ".json"
	if !json.Valid(data) {
		kind, suffix = "application/octet-stream", ".bin"
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+name+suffix+`"`)
	return c.Blob(http.StatusOK, kind, data)
}

// LocalPath returns the way back that a form names, if it stays on this host in
// the eyes of every browser: it begins with one slash, and has nothing that a
// browser takes for another slash or skips.
func LocalPath(back string) (string, bool) {
	if !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || len(back) > 2048 {
		return "", false
	}
	for i := range len(back) {
		if c := back[i]; c <= ' ' || c == '\\' || c >= 0x7f {
			return "", false
		}
	}
	u, err := url.Parse(back)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil {
		return "", false
	}
	return back, true
}

// Object is a JSON object: names and values in turn, in the order in which they
// are written. A member whose name ends in a question mark is left out when its
// value is zero or empty. So one line says how programs know a value and where it
// comes from, and a payload can be written as the bytes that it has.
type Object []any

// Encode writes the object on a line of its own.
func (o Object) Encode() []byte { return append(Encode(o), '\n') }

// Names are the names of all members.
func (o Object) Names() (all []string) {
	for i := 0; i+1 < len(o); i += 2 {
		all = append(all, strings.TrimSuffix(o[i].(string), "?"))
	}
	return all
}

// Texts are the values of all members as the cells of a table, empty where the
// member is left out. Objects with members of their own have none.
func (o Object) Texts() (all []string) {
	for i := 0; i+1 < len(o); i += 2 {
		text := ""
		if at, ok := o[i+1].(time.Time); ok {
			text = wire.FormatTime(at)
		} else if !strings.HasSuffix(o[i].(string), "?") || !isEmpty(o[i+1]) {
			text = fmt.Sprint(o[i+1])
		}
		all = append(all, text)
	}
	return all
}

// List writes each item as shape says.
func List[T any](items []T, shape func(T) Object) []Object {
	all := make([]Object, len(items))
	for i, x := range items {
		all[i] = shape(x)
	}
	return all
}

// Raw is JSON that is written byte for byte.
type Raw []byte

// Encode writes a value: times and durations as package wire does, anything else
// as encoding/json does.
func Encode(v any) []byte { return encode(nil, v) }

// encode appends a value to b.
func encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case Raw:
		return append(b, v...)
	case Object:
		return v.encode(b)
	case []Object:
		b = append(b, '[')
		for i, o := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = o.encode(b)
		}
		return append(b, ']')
	case time.Time:
		return encode(b, wire.FormatTime(v))
	case time.Duration:
		return encode(b, wire.FormatDuration(v))
	}
	data, err := json.Marshal(v)
	if err != nil { // unreachable: answers hold strings, numbers and valid JSON
		panic(fmt.Sprintf("web.Encode(%T): %v", v, err))
	}
	return append(b, data...)
}

// encode appends the members that are not left out.
func (o Object) encode(b []byte) []byte {
	b = append(b, '{')
	for i, names := 0, 0; i+1 < len(o); i += 2 {
		name, optional := strings.CutSuffix(o[i].(string), "?")
		if optional && isEmpty(o[i+1]) {
			continue
		}
		if names++; names > 1 {
			b = append(b, ',')
		}
		b = encode(append(strconv.AppendQuote(b, name), ':'), o[i+1])
	}
	return append(b, '}')
}

// isEmpty reports whether a value says nothing.
func isEmpty(value any) bool {
	if t, ok := value.(time.Time); ok {
		return t.IsZero()
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// Kind is the kind of an error: what an answer's code names it, its status, and
// the headline of its page.
type Kind struct {
	Code   string
	Status int
	Title  string
}

// The kinds of errors.
var (
	Malformed     = Kind{"malformed", http.StatusBadRequest, "This request cannot be read"}
	BadParameter  = Kind{"invalid_parameter", http.StatusBadRequest, "Invalid address"} // in the address
	CrossOrigin   = Kind{"cross_origin", http.StatusForbidden, "Refused: the request came from another site"}
	UnknownCaller = Kind{"unauthorized", http.StatusUnauthorized, "Log in first"}
	UnknownLogin  = Kind{"wrong_login", http.StatusUnauthorized, "Log in first"}
	Forbidden     = Kind{"forbidden", http.StatusForbidden, "Your role does not allow this"}
	TooMany       = Kind{"too_many", http.StatusTooManyRequests, "Your address has reached a limit"}
	NotFound      = Kind{"not_found", http.StatusNotFound, "Not found"}
	removed       = Kind{"removed", http.StatusGone, "This job was removed"}
	WrongMethod   = Kind{"method_not_allowed", http.StatusMethodNotAllowed, "Method not allowed"}
	Conflict      = Kind{"conflict", http.StatusConflict, "Not possible in the current state"}
	KeyReused     = Kind{"key_reused", http.StatusConflict, "Idempotency key already used"}
	TooLarge      = Kind{"too_large", http.StatusRequestEntityTooLarge, "Request too large"}
	MediaType     = Kind{"unsupported_media_type", http.StatusUnsupportedMediaType, "Unsupported content type"}
	WrongHost     = Kind{"wrong_host", http.StatusMisdirectedRequest, "Unknown host name"}
	InvalidValue  = Kind{"invalid_value", http.StatusUnprocessableEntity, "Invalid value"} // in the body
	QueuesFull    = Kind{"too_many_queues", http.StatusUnprocessableEntity, "Too many queues"}
	Refused       = Kind{"refused_by_rule", http.StatusUnprocessableEntity, "Refused by a rule"}
	ResendRefused = Kind{"dead_letter_refused", http.StatusConflict, "The dead letter was refused again"}
	Unexpected    = Kind{"internal", http.StatusInternalServerError, "Something went wrong"}
	Busy          = Kind{"busy", http.StatusServiceUnavailable, "The database is busy"}
	Overloaded    = Kind{"overloaded", http.StatusServiceUnavailable, "Too many requests at once"}
	tooSlow       = Kind{"too_slow", http.StatusServiceUnavailable, "This took too long"}
	RulesTooSlow  = Kind{"rules_too_slow", http.StatusServiceUnavailable, "The rules took too long"} // unlike tooSlow, nothing was changed
	ReadOnly      = Kind{"read_only", http.StatusServiceUnavailable, "The database is read-only"}
	Unsafe        = Kind{"storage_unsafe", http.StatusServiceUnavailable, "The database files are not safe to use"}
	Broken        = Kind{"storage_failed", http.StatusServiceUnavailable, "The database has failed"}
	Corrupt       = Kind{"storage_damaged", http.StatusServiceUnavailable, "The database is damaged"}
	StorageFull   = Kind{"storage_full", http.StatusInsufficientStorage, "The disk is full"}
)

// Failure is an error with all that its answer says.
type Failure struct {
	Kind    Kind
	Field   string
	Text    string
	First   *job.Conflict // what happened instead
	FirstID string        // what an idempotency key was used for first: the id of a job, or the number of an operation
}

// Fail is a failure of a kind.
func Fail(kind Kind, text string) *Failure { return &Failure{Kind: kind, Text: text} }

// FailIn is a failure that is about a field.
func FailIn(kind Kind, field, text string) *Failure {
	return &Failure{Kind: kind, Field: field, Text: text}
}

// Error names the field if there is one.
func (f *Failure) Error() string {
	if f.Field != "" {
		return f.Field + ": " + f.Text
	}
	return f.Text
}

// Describe is the table from errors to answers. An error that is not in it is a
// mistake of ours: the answer says nothing about it, the log does.
func Describe(err error) *Failure {
	var (
		own    *Failure
		first  *job.Conflict
		field  *invalid.Error
		ruled  *rules.Refused
		large  *http.MaxBytesError
		routed *echo.HTTPError
		no     *access.Refusal
		full   *queues.Full
		gone   *retention.Removed
	)
	advice := func(otherwise string) string { return cmp.Or(view.Advice(err), otherwise) }
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &first):
		return &Failure{Kind: Conflict, Text: first.Problem, First: first}
	case errors.As(err, &field):
		return FailIn(InvalidValue, field.Field, field.Problem)
	case errors.As(err, &ruled):
		return RefusedBy("", ruled)
	case errors.As(err, &full):
		return FailIn(QueuesFull, "queue", full.Error())
	case errors.As(err, &large):
		return Fail(TooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit))
	case errors.As(err, &routed) && routed.Code == http.StatusNotFound:
		return Fail(NotFound, "nothing exists at this address")
	case errors.As(err, &routed) && routed.Code == http.StatusMethodNotAllowed:
		return Fail(WrongMethod, "this address does not accept this method")
	case errors.As(err, &no):
		return Fail(Conflict, no.Problem)
	case errors.Is(err, access.ErrUnknown):
		return Fail(NotFound, "there is no such user or token; it may have been removed")
	case errors.As(err, &gone):
		return Fail(removed, gone.Error())
	case errors.Is(err, job.ErrNotFound):
		return Fail(NotFound, "there is no such job, queue, error group or operation; it may have been removed")
	case errors.Is(err, fault.ErrOverloaded):
		return Fail(Busy, "the disk cannot keep up with the writes; nothing was changed, try again")
	case errors.Is(err, fault.ErrStarved):
		return Fail(Busy, advice("the database lacks memory or file descriptors; try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrBusy):
		return Fail(Busy, "another process is keeping the database busy; nothing was changed, try again")
	case errors.Is(err, fault.ErrStorageFull):
		return Fail(StorageFull, advice("the disk is full; make room and try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrReadOnly):
		return Fail(ReadOnly, advice("the database file is read-only")+"; nothing was changed")
	case errors.Is(err, fault.ErrUnsafe):
		return Fail(Unsafe, advice("the database files are not safe to use")+"; nothing was changed")
	case errors.Is(err, fault.ErrCorrupt):
		return Fail(Corrupt, advice("the database file is damaged; restore a backup"))
	case errors.Is(err, fault.ErrBroken):
		return Fail(Broken, advice("the database failed; restart the dashboard")+"; then check whether this change was made")
	case errors.Is(err, context.DeadlineExceeded):
		return Fail(tooSlow, "no answer in time")
	}
	return Fail(Unexpected, "internal error; the log has details")
}

// RefusedBy is the answer about a job that a rule refused; path is where the job
// is in the body.
func RefusedBy(path string, r *rules.Refused) *Failure {
	return FailIn(Refused, path, fmt.Sprintf("%s (rule %s)", r.Text, r.Rule))
}

// InAddress says that a wrong value is in the address of the request.
func InAddress(err error) error {
	if field := new(invalid.Error); errors.As(err, &field) {
		return FailIn(BadParameter, field.Field, field.Problem)
	}
	return err
}

// Tolerate turns the end of a deadline into a fact about the answer: what was
// found by then is shown.
func Tolerate(err error) (slow bool, _ error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// InTime is Tolerate for a result.
func InTime[T any](found T, err error) (_ T, slow bool, _ error) {
	slow, err = Tolerate(err)
	return found, slow, err
}

// Encode writes a failure, and the caller who acted first if there is one.
func (f *Failure) Encode() []byte {
	first := cmp.Or(f.First, &job.Conflict{})
	return Encode(Object{
		"error", Object{"code", f.Kind.Code, "message", f.Text, "field?", f.Field, "first?", f.FirstID},
		"replayed_by?", first.ReplayedBy, "replayed_at?", first.ReplayedAt,
	})
}
