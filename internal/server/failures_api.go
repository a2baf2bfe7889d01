package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/failures"
	"redrive/internal/invalid"
	"redrive/internal/wire"
)

type groupShape struct {
	Fingerprint string             `json:"fingerprint"`
	Type        string             `json:"type"`
	Class       string             `json:"class"`
	Message     string             `json:"message"` // with placeholders
	Frames      []string           `json:"frames,omitempty"`
	State       failures.State     `json:"state"`
	StateAt     string             `json:"state_at,omitempty"`
	StateBy     string             `json:"state_by,omitempty"`
	ReopenedAt  string             `json:"reopened_at,omitempty"`
	ReopenedBy  failures.Reopening `json:"reopened_by,omitempty"` // failure, date, count or rate
	Until       string             `json:"until,omitempty"`
	UntilCount  int64              `json:"until_failures,omitempty"`
	UntilRate   int64              `json:"until_failures_an_hour,omitempty"`
	Note        string             `json:"note,omitempty"`
	FirstSeen   string             `json:"first_seen"`
	LastSeen    string             `json:"last_seen"`
	Failures    int64              `json:"failures"`
	Dead        int64              `json:"dead"`
	Retrying    int64              `json:"retrying"`
	Replayed    int64              `json:"replayed"`
	Recovered   int64              `json:"recovered"`
	Relapsed    int64              `json:"relapsed"`
	Queues      []shareShape       `json:"queues,omitempty"`
	LastDay     []int64            `json:"last_day,omitempty"` // failures by the hour, the oldest first
}

type shareShape struct {
	Queue    string `json:"queue"`
	Failures int64  `json:"failures"`
}

type hourShape struct {
	At       string `json:"at"`
	Failures int64  `json:"failures"`
	Final    int64  `json:"final"` // of these, the last attempt of a run
}

func shapeGroup(g failures.Group) groupShape {
	shape := groupShape{
		Fingerprint: g.Fingerprint, Type: g.Type, Class: g.Class, Message: g.Message, Frames: g.Frames,
		State: g.State, StateAt: wire.FormatTime(g.StateAt), StateBy: g.StateBy,
		ReopenedAt: wire.FormatTime(g.ReopenedAt), ReopenedBy: g.ReopenedBy,
		Until: wire.FormatTime(g.Until), UntilCount: g.Patience.Count, UntilRate: g.Rate, Note: g.Note,
		FirstSeen: wire.FormatTime(g.FirstSeen), LastSeen: wire.FormatTime(g.LastSeen),
		Failures: g.Failures, Dead: g.Dead, Retrying: g.Retrying,
		Replayed: g.Replayed, Recovered: g.Recovered, Relapsed: g.Relapsed, LastDay: g.LastDay,
	}
	for _, q := range g.Queues {
		shape.Queues = append(shape.Queues, shareShape{q.Name, q.Count})
	}
	return shape
}

// listGroups is GET /failures: groups in every state, unless one is named.
func (s *Server) listGroups(c echo.Context) error {
	values := c.QueryParams()
	f, after, wrong := groupQuery(values)
	limit, err := asked(values, wrong)
	if err != nil {
		return err
	}
	page, err := s.View.Groups(c.Request().Context(), time.Now(), f, after, limit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	all := make([][]byte, len(page.Groups))
	for i, g := range page.Groups {
		all[i] = encode(shapeGroup(g))
	}
	return c.JSONBlob(http.StatusOK, object("groups", list(all), endOf(page.Next.String(), slow)...))
}

// showGroup is GET /failures/{fingerprint}. Its jobs are a list of their own:
// GET /jobs?group=FINGERPRINT.
func (s *Server) showGroup(c echo.Context) error {
	d, err := s.View.Group(c.Request().Context(), time.Now(), c.Param("fingerprint"))
	if err != nil {
		return err
	}
	hours := make([]hourShape, len(d.Hours))
	for i, h := range d.Hours {
		hours[i] = hourShape{wire.FormatTime(h.At), h.Failures, h.Final}
	}
	return c.JSONBlob(http.StatusOK, object("group", encode(shapeGroup(d.Group)), "hours", encode(hours), "sample", encode(d.Sample.Job.ID)))
}

// setStanding is POST /failures/{fingerprint}/resolve, /ignore and /reopen. Only
// ignore has a body: until or for, failures and failures_an_hour, all optional.
func (s *Server) setStanding(c echo.Context) error {
	act, now := lastSegment(c.Path()), time.Now()
	to, err := readStanding(act, func(string) string { return "" }, now)
	if err != nil {
		return err
	}
	data, err := optional(c)
	if err != nil {
		return err
	}
	of := fields{}
	if act == "ignore" {
		of = patienceFields(&to, now)
	}
	if err := of.read("", data); err != nil {
		return err
	}
	if err := to.Check(now); err != nil {
		return err
	}
	g, err := s.View.SetGroup(c.Request().Context(), now, c.Param("fingerprint"), to, s.actor("api", c))
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("group", encode(shapeGroup(g))))
}

// patienceFields read until when a group is ignored.
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

// ending reads a time at which a group opens again. There is one at most.
func ending(to *failures.Decision, path string, raw json.RawMessage, read func(string, json.RawMessage) error) error {
	if !to.Until.IsZero() {
		return &invalid.Error{Field: path, Problem: "stands beside the other of until and for; say one of them"}
	}
	return read(path, raw)
}

// failureCount reads a number of failures.
func failureCount(to *int64) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		err := value(to, "a number")(path, raw)
		if err == nil && (*to < 1 || *to > failures.MaxPatience) {
			err = &invalid.Error{Field: path, Problem: fmt.Sprintf("must be between 1 and %d", failures.MaxPatience)}
		}
		return err
	}
}

// setNote is POST /failures/{fingerprint}/note.
func (s *Server) setNote(c echo.Context) error {
	var note string
	if err := readSmall(c, fields{"note": value(&note, "a string")}); err != nil {
		return err
	}
	g, err := s.noted(c, note, "api")
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("group", encode(shapeGroup(g))))
}
