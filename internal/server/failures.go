package server

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/wire"
	"redrive/web/templates/failurepage"
)

// groupRoutes are the ways to the error groups.
func (s *Server) groupRoutes() {
	const api = "/api/v1/failures"
	s.get("/failures", access.View, s.failures)
	s.get("/failures/:fingerprint", access.View, s.failure)
	s.get(api, access.View, s.listGroups)
	s.get(api+"/:fingerprint", access.View, s.showGroup)
	for _, act := range []string{"resolve", "ignore", "reopen"} {
		s.post("/failures/:fingerprint/"+act, access.Operate, s.standingForm)
		s.post(api+"/:fingerprint/"+act, access.Operate, s.setStanding)
	}
	s.post("/failures/:fingerprint/note", access.Operate, s.noteForm)
	s.post(api+"/:fingerprint/note", access.Operate, s.setNote)
}

// typedGroups is the filter of a list of groups as an address has it.
func typedGroups(values url.Values) failures.Filter {
	return failures.Filter{
		State: failures.State(values.Get("state")), Queue: values.Get("queue"), Type: values.Get("type"),
		Text: strings.TrimSpace(values.Get("q")), Sort: failures.Sort(values.Get("sort")),
	}
}

// groupQuery reads the filter and the cursor of a list of groups, and returns
// what is wrong with each field. A field that is wrong is not in the filter, so
// that no link of the page leads to it again.
func groupQuery(values url.Values) (f failures.Filter, after failures.Cursor, wrong []*invalid.Error) {
	f = typedGroups(values)
	for err := f.Check(); err != nil; err = f.Check() {
		field := fieldOf(err)
		wrong = append(wrong, field)
		was := f
		if f = f.Without(field.Field); f == was { // it is about none of them
			f = failures.Filter{}
		}
	}
	after, err := failures.ParseCursor(values.Get("after"))
	if err != nil {
		wrong = append(wrong, fieldOf(err))
	}
	return f, after, wrong
}

// failures is the page /failures. Without a state it shows the open groups.
func (s *Server) failures(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	values.Set("state", cmp.Or(values.Get("state"), string(failures.Open)))
	v := failurepage.List{Frame: s.frame(c, "Failures", "failures"), Queues: s.Store.QueueNames(), After: values.Get("after")}
	filter, after, wrong := groupQuery(values)
	filter.State = cmp.Or(filter.State, failures.Open)
	v.Filter, v.Typed, v.Errors = filter, typedGroups(values), byField(wrong)
	var err error
	if v.Tallies, err = s.Store.GroupTallies(ctx); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return s.page(c, http.StatusBadRequest, v.Page())
	}
	v.List, err = s.Store.Groups(ctx, now, filter, after, pageLimit)
	if v.Slow, err = tolerate(err); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// failure is the page /failures/{fingerprint}.
func (s *Server) failure(c echo.Context) error {
	ctx, fingerprint := c.Request().Context(), c.Param("fingerprint")
	d, err := s.Store.Group(ctx, time.Now(), fingerprint)
	if err != nil {
		return err
	}
	v := failurepage.View{Frame: s.frame(c, d.Class, "failures"), Detail: d}
	v.Keys, v.Read = commonest(d.Jobs)
	if v.Operations, err = s.Store.GroupOperations(ctx, fingerprint); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// standingForm resolves, ignores or opens the group that the address names.
func (s *Server) standingForm(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	to, err := readStanding(lastSegment(c.Path()), c.FormValue, time.Now())
	if err != nil {
		return err
	}
	g, err := s.Store.SetGroup(c.Request().Context(), time.Now(), c.Param("fingerprint"), to, s.actor("dashboard", c))
	if err != nil {
		return err
	}
	return s.groupDone(c, g, "Group is "+string(g.State))
}

func (s *Server) noteForm(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	g, err := s.noted(c, c.FormValue("note"), "dashboard")
	if err != nil {
		return err
	}
	return s.groupDone(c, g, "Note kept")
}

// groupDone answers a form: the browser goes back to the group.
func (s *Server) groupDone(c echo.Context, g failures.Group, text string) error {
	return done(c, "/failures/"+url.PathEscape(g.Fingerprint), "group", encode(shapeGroup(g)), "text", encode(text))
}

// noted writes a note on the group that the address names.
func (s *Server) noted(c echo.Context, note, through string) (failures.Group, error) {
	note = strings.ReplaceAll(strings.TrimSpace(note), "\r\n", "\n")
	if len(note) > job.MaxNote {
		return failures.Group{}, &invalid.Error{Field: "note", Problem: "is longer than " + strconv.Itoa(job.MaxNote) + " bytes"}
	}
	return s.Store.NoteGroup(c.Request().Context(), time.Now(), c.Param("fingerprint"), strings.ToValidUTF8(note, "\uFFFD"), s.actor(through, c))
}

// readStanding reads what a person decides. A form that ignores says how in one
// field and until what in another: what the others hold does not count.
func readStanding(act string, field func(string) string, now time.Time) (to failures.Decision, err error) {
	switch act {
	case "resolve":
		to.State = failures.Resolved
		return to, nil
	case "reopen":
		to.State = failures.Open
		return to, nil
	}
	to.State = failures.Ignored
	switch how := field("how"); how {
	case "", "always":
	case "for":
		to.Until, err = fromNow("for", field("for"), now)
	case "count":
		to.More, err = atLeastOne("count", field("count"))
	case "rate":
		to.Rate, err = atLeastOne("rate", field("rate"))
	default:
		err = &invalid.Error{Field: "how", Problem: "must be always, for, count or rate"}
	}
	if err == nil {
		err = to.Check(now)
	}
	return to, err
}

// fromNow is the end of a duration that begins now.
func fromNow(name, text string, now time.Time) (time.Time, error) {
	d, err := wire.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("must be longer than zero")
	}
	if err != nil {
		return time.Time{}, &invalid.Error{Field: name, Problem: err.Error()}
	}
	return now.Add(d).UTC(), nil
}

func atLeastOne(name, text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 1 {
		return 0, &invalid.Error{Field: name, Problem: strconv.Quote(clip.Text(text, 64)) + " is not a whole number above zero"}
	}
	return n, nil
}
