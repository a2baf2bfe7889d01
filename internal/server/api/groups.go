package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/web"
)

// shapeGroup is an error group as the API shows it.
func shapeGroup(g failures.Group) web.Object {
	return web.Object{
		"fingerprint", g.Fingerprint, "type", g.Type, "class", g.Class,
		"message", g.Message, // with placeholders
		"frames?", g.Frames, "state", g.State, "state_at?", g.StateAt, "state_by?", g.StateBy,
		"reopened_at?", g.ReopenedAt, "reopened_by?", g.ReopenedBy, // failure, date, count or rate
		"until?", g.Until, "until_failures?", g.Patience.Count, "until_failures_an_hour?", g.Rate, "note?", g.Note,
		"first_seen", g.FirstSeen, "last_seen", g.LastSeen, "failures", g.Failures, "dead", g.Dead, "retrying", g.Retrying,
		"replayed", g.Replayed, "recovered", g.Recovered, "relapsed", g.Relapsed,
		"queues?", web.List(g.Queues, func(s filter.NameCount) web.Object { return web.Object{"queue", s.Name, "failures", s.Count} }),
		"last_day?", g.LastDay, // failures by the hour, the oldest first
	}
}

// groups is GET /failures: groups in every state, unless a state is named.
func (a *API) groups(c echo.Context) (web.Object, error) {
	list := func(ctx context.Context, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
		return a.View.Groups(ctx, time.Now(), f, after, limit)
	}
	_, found, slow, err := search(c, web.GroupQuery, list)
	return page("groups", web.List(found.Groups, shapeGroup), found.Next.String(), slow), err
}

// group is GET /failures/{fingerprint}. The jobs of the group are a list of
// their own: GET /jobs?group=FINGERPRINT.
func (a *API) group(c echo.Context) (web.Object, error) {
	d, err := a.View.Group(c.Request().Context(), time.Now(), c.Param("fingerprint"))
	hours := web.List(d.Hours, func(h failures.Hour) web.Object {
		return web.Object{"at", h.At, "failures", h.Failures, "final", h.Final} // final: of the failures, the last attempts of a run
	})
	return web.Object{"group", shapeGroup(d.Group), "hours", hours, "sample", d.Sample.Job.ID}, err
}

// groupActs are what people decide about error groups.
func (a *API) groupActs() []Act {
	acts := []Act{{"/failures/:fingerprint/note", a.noteGroup}}
	for _, name := range []string{"resolve", "ignore", "reopen"} {
		acts = append(acts, Act{"/failures/:fingerprint/" + name, a.decideGroup})
	}
	return acts
}

// groupOutcome leads back to the page of the group.
func groupOutcome(g failures.Group, text string) Outcome {
	return Outcome{Says: web.Object{"group", shapeGroup(g)}, Text: text, Page: "/failures/" + url.PathEscape(g.Fingerprint)}
}

// noteGroup writes a note on the group that the address names.
func (a *API) noteGroup(c echo.Context) (Outcome, error) {
	note, err := readNote(c)
	if err != nil {
		return Outcome{}, err
	}
	note = strings.ReplaceAll(strings.TrimSpace(note), "\r\n", "\n")
	if len(note) > job.MaxNote {
		return Outcome{}, &invalid.Error{Field: "note", Problem: "is longer than " + strconv.Itoa(job.MaxNote) + " bytes"}
	}
	note = strings.ToValidUTF8(note, "\uFFFD")
	g, err := a.View.NoteGroup(c.Request().Context(), time.Now(), c.Param("fingerprint"), note, web.Actor(c))
	return groupOutcome(g, "Note kept"), err
}

// readNote reads a note. A program has to say it even when it is empty: a request
// without a body must not remove a note.
func readNote(c echo.Context) (note string, err error) {
	if web.IsForm(c) {
		err = web.ReadForm(c)
		return c.FormValue("note"), err
	}
	said := false
	err = readSmall(c, fields{"note": func(path string, raw json.RawMessage) error {
		said = true
		return value(&note, aString)(path, raw)
	}})
	if err == nil && !said {
		err = &invalid.Error{Field: "note", Problem: "is missing; send an empty text to remove the note"}
	}
	return note, err
}

// decideGroup resolves, ignores or reopens the group that the address names.
func (a *API) decideGroup(c echo.Context) (Outcome, error) {
	now := time.Now()
	to, err := readDecision(c, now)
	if err == nil {
		err = to.Check(now)
	}
	if err != nil {
		return Outcome{}, err
	}
	g, err := a.View.SetGroup(c.Request().Context(), now, c.Param("fingerprint"), to, web.Actor(c))
	return groupOutcome(g, "Group is "+string(g.State)), err
}

// readDecision reads a decision. Only ignoring takes more than a word: until
// when, which is optional.
func readDecision(c echo.Context, now time.Time) (to failures.Decision, err error) {
	switch web.LastSegment(c.Path()) {
	case "resolve":
		to.State = failures.Resolved
		return to, readNothing(c)
	case "reopen":
		to.State = failures.Open
		return to, readNothing(c)
	}
	to.State = failures.Ignored
	if !web.IsForm(c) {
		return to, readSmall(c, patienceFields(&to, now))
	}
	if err := web.ReadForm(c); err != nil {
		return to, err
	}
	return to, formPatience(&to, c.FormValue, now)
}

// formPatience reads a form in which one field says how to ignore the group and
// another one until when. The fields of the other choices are in the form as
// well and do not count.
func formPatience(to *failures.Decision, field func(string) string, now time.Time) (err error) {
	switch field("how") {
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
	return err
}

// fromNow is the end of a duration that begins now.
func fromNow(name, text string, now time.Time) (time.Time, error) {
	d, err := parsePositive(text)
	if err != nil {
		return time.Time{}, &invalid.Error{Field: name, Problem: err.Error()}
	}
	return now.Add(d).UTC(), nil
}

// atLeastOne reads a number above zero.
func atLeastOne(name, text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 1 {
		return 0, &invalid.Error{Field: name, Problem: strconv.Quote(clip.Text(text, 64)) + " is not a whole number above zero"}
	}
	return n, nil
}

// patienceFields reads until when a group is ignored.
func patienceFields(to *failures.Decision, now time.Time) fields {
	return fields{
		"until": func(path string, raw json.RawMessage) error { return ending(to, path, raw, moment(&to.Until)) },
		"for": func(path string, raw json.RawMessage) error {
			var d time.Duration
			err := ending(to, path, raw, positive(&d))
			to.Until = now.Add(d).UTC()
			return err
		},
		"failures": failureCount(&to.More), "failures_an_hour": failureCount(&to.Rate),
	}
}

// ending reads when a group reopens, which can be said only once.
func ending(to *failures.Decision, path string, raw json.RawMessage, read reader) error {
	if !to.Until.IsZero() {
		return &invalid.Error{Field: path, Problem: "stands beside the other of until and for; say one of them"}
	}
	return read(path, raw)
}

// failureCount reads a number of failures.
func failureCount(to *int64) reader {
	return checked(to, "a number", func(n int64) string {
		if n < 1 || n > failures.MaxPatience {
			return fmt.Sprintf("must be between 1 and %d", failures.MaxPatience)
		}
		return ""
	})
}
