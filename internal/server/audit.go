package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/wire"
	"redrive/web/templates/adminpage"
)

// auditRoutes are the audit log, and the act that is for nothing else: to see
// what is redacted.
func (s *Server) auditRoutes() {
	const v1 = "/api/v1"
	s.get("/audit", access.View, s.audit)
	s.exportRoutes("/audit", s.auditSheet)
	s.get(v1+"/audit", access.View, s.listAudit)
	s.post("/jobs/:id/reveal", access.Reveal, s.revealForm)
	s.post(v1+"/jobs/:id/reveal", access.Reveal, s.revealJob)
}

// auditFilter reads the filter of the log. Those who may not manage see of the
// reveals their own.
func auditFilter(c echo.Context) (f audit.Filter, after int64, err error) {
	f = audit.Filter{Actor: c.QueryParam("actor"), Action: c.QueryParam("action"), Subject: c.QueryParam("subject")}
	if f.From, err = timeIn(c, "from"); err != nil {
		return f, 0, err
	}
	if f.To, err = timeIn(c, "to"); err != nil {
		return f, 0, err
	}
	if who := callerOf(c); who.name != "" && !who.role.May(access.Manage) {
		f.Reveals = who.name
	}
	if after, err = number(c, "after"); err != nil {
		return f, 0, err
	}
	return f, after, f.Check()
}

// timeIn is a time in the address, zero when there is none.
func timeIn(c echo.Context, name string) (time.Time, error) {
	text := c.QueryParam(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &invalid.Error{Field: name, Problem: fmt.Sprintf("%q is not a time as 2026-03-12T14:02:11Z", clip.Text(text, 64))}
	}
	return at.UTC(), nil
}

// audit is the page /audit.
func (s *Server) audit(c echo.Context) error {
	f, after, err := auditFilter(c)
	v := adminpage.Audit{Frame: s.frame(c, "Audit", "audit"), Filter: f, After: after, Own: f.Reveals != ""}
	if wrong := new(invalid.Error); errors.As(err, &wrong) {
		v.Errors = byField([]*invalid.Error{wrong})
		return s.page(c, http.StatusBadRequest, v.Page())
	} else if err != nil {
		return err
	}
	v.List, err = s.Store.Audit(c.Request().Context(), f, after, pageLimit)
	if v.Slow, err = tolerate(err); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// entryShape is an entry as the API and the exports show it.
type entryShape struct {
	Seq     int64  `json:"seq"`
	At      string `json:"at"`
	Actor   string `json:"actor"`
	Address string `json:"address,omitempty"`
	Action  string `json:"action"`
	Subject string `json:"subject,omitempty"`
	Filter  string `json:"filter,omitempty"`
	Count   int64  `json:"count"`
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Hash    string `json:"hash,omitempty"`
}

func shapeEntry(e audit.Entry) entryShape {
	return entryShape{e.Seq, wire.FormatTime(e.At), e.Actor.Name, e.Actor.Address, e.Action, e.Subject, e.Filter, e.Count,
		e.Before, e.After, fmt.Sprintf("%x", e.Hash)}
}

func encodeEntries(entries []audit.Entry) []byte {
	all := make([][]byte, len(entries))
	for i, e := range entries {
		all[i] = encode(shapeEntry(e))
	}
	return list(all)
}

// listAudit is GET /audit.
func (s *Server) listAudit(c echo.Context) error {
	f, after, err := auditFilter(c)
	if err != nil {
		return inAddress(err)
	}
	limit, err := pageSize(c.QueryParams())
	if err != nil {
		return inAddress(err)
	}
	page, err := s.Store.Audit(c.Request().Context(), f, after, limit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("entries", encodeEntries(page.Entries), endOf(page.Next, slow)...))
}

// auditPage is how many entries of an export are read at once.
const auditPage = 500

// auditSheet is the log as far as the address selects it, newest first.
func (s *Server) auditSheet(c echo.Context) (sheet, error) {
	f, after, err := auditFilter(c)
	if err != nil {
		return sheet{}, inAddress(err)
	}
	next := func(ctx context.Context) (leaf, error) {
		page, err := s.Store.Audit(ctx, f, after, auditPage)
		slow, err := tolerate(err)
		after = page.Next
		return leafOf(page.Entries, shapeEntry, after != 0, slow), err
	}
	return sheet{name: "audit", filter: f.String(), head: auditHead(), next: next}, nil
}

func auditHead() []string {
	return []string{"seq", "at", "actor", "address", "action", "subject", "filter", "count", "before", "after", "hash"}
}

func (e entryShape) line() []byte { return encode(e) }

func (e entryShape) cells() []string {
	return []string{
		strconv.FormatInt(e.Seq, 10), e.At, e.Actor, e.Address, e.Action, e.Subject, e.Filter,
		strconv.FormatInt(e.Count, 10), e.Before, e.After, e.Hash,
	}
}

// reveal is everything about a job as it is, after it was written down who
// wants to see it.
func (s *Server) reveal(c echo.Context, through string) (history.Detail, error) {
	id, err := paramID(c)
	if err != nil {
		return history.Detail{}, err
	}
	ctx := c.Request().Context()
	d, err := s.Store.original(ctx, id)
	if err != nil {
		return history.Detail{}, err
	}
	err = s.Store.Record(ctx, audit.Entry{
		At: time.Now(), Actor: s.actor(through, c), Action: audit.Reveal, Subject: id, Count: 1, After: fmt.Sprintf("%s, run %d", d.Job.Status(), d.Job.Run),
	})
	d.Job = s.sinceItBegan(d.Job)
	return d, err
}

// revealForm answers with the job's page, this once with nothing hidden.
func (s *Server) revealForm(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	d, err := s.reveal(c, "dashboard")
	if err != nil {
		return err
	}
	if wantsJSON(c.Request()) {
		return s.answerDetail(c, d)
	}
	return s.jobPage(c, d, true)
}

// revealJob is POST /jobs/{id}/reveal.
func (s *Server) revealJob(c echo.Context) error {
	if _, err := s.bareAct(c, paramID); err != nil {
		return err
	}
	d, err := s.reveal(c, "api")
	if err != nil {
		return err
	}
	return s.answerDetail(c, d)
}

// trail is what the log knows of a job, as far as whoever asks may see it.
func (s *Server) trail(c echo.Context, id string) ([]audit.Entry, error) {
	f := audit.Filter{Subject: id}
	if who := callerOf(c); who.name != "" && !who.role.May(access.Manage) {
		f.Reveals = who.name
	}
	page, err := s.Store.Audit(c.Request().Context(), f, 0, pageLimit)
	_, err = tolerate(err)
	return page.Entries, err
}

// gone is the page of a job that was removed, or the error of one that nobody
// knows.
func (s *Server) gone(c echo.Context, missing error) error {
	id, err := paramID(c)
	if err != nil {
		return err
	}
	entries, err := s.trail(c, id)
	if err != nil || len(entries) == 0 {
		return errors.Join(missing, err)
	}
	return s.page(c, http.StatusGone, adminpage.Gone{Frame: s.frame(c, "Gone", "jobs"), ID: id, Entries: entries}.Page())
}
