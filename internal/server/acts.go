package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/invalid"
	"redrive/internal/job"
)

// The acts of pages are forms. With scripts they ask for JSON and the answer is
// shown in place; without, the browser is sent back to where it was.

// replayForm replays the run that the page showed, as it was or with changes.
func (s *Server) replayForm(c echo.Context) error {
	if err := readFormOf(c, maxRedo); err != nil {
		return err
	}
	if c.FormValue("changes") != "" {
		return s.redoForm(c)
	}
	return s.actOnJob(c, func(id string) (job.Job, string, error) {
		run, err := formRun(c)
		if err != nil {
			return job.Job{}, "", err
		}
		j, err := s.View.Replay(c.Request().Context(), time.Now(), id, run, s.actor("dashboard", c))
		return j, fmt.Sprintf("Replayed, run %d · %s", j.Run, j.Status()), err
	})
}

func (s *Server) discardForm(c echo.Context) error {
	return s.actOnJob(c, func(id string) (job.Job, string, error) {
		run, err := formRun(c)
		if err != nil {
			return job.Job{}, "", err
		}
		j, err := s.View.Discard(c.Request().Context(), time.Now(), id, run, s.actor("dashboard", c))
		return j, "Discarded", err
	})
}

func (s *Server) cancelForm(c echo.Context) error {
	return s.actOnJob(c, func(id string) (job.Job, string, error) {
		run, err := formRun(c)
		if err != nil {
			return job.Job{}, "", err
		}
		j, err := s.View.Cancel(c.Request().Context(), time.Now(), id, run, s.actor("dashboard", c))
		return j, "Cancelled", err
	})
}

func (s *Server) forwardForm(c echo.Context) error {
	return s.actOnJob(c, func(id string) (job.Job, string, error) {
		run, err := formRun(c)
		if err != nil {
			return job.Job{}, "", err
		}
		j, err := s.forward(c.Request().Context(), id, run, s.actor("dashboard", c))
		return j, "Forwarded · " + string(j.Status()), err
	})
}

func (s *Server) pauseForm(c echo.Context) error {
	return s.actOnQueue(c, "Paused", func(name string) error {
		return s.View.Pause(c.Request().Context(), time.Now(), name, s.actor("dashboard", c))
	})
}

func (s *Server) resumeForm(c echo.Context) error {
	return s.actOnQueue(c, "Resumed", func(name string) error {
		return s.View.Resume(c.Request().Context(), time.Now(), name, s.actor("dashboard", c))
	})
}

// faultForm breaks or fixes something in the demo.
func (s *Server) faultForm(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	broken, err := strconv.ParseBool(c.FormValue("broken"))
	if err != nil {
		return &invalid.Error{Field: "broken", Problem: "must be true or false"}
	}
	if err := s.Demo.SetFault(c.Param("name"), broken); err != nil {
		return err
	}
	text := "Fixed"
	if broken {
		text = "Broken"
	}
	return done(c, "/", "text", encode(text))
}

// resetForm starts the demo over.
func (s *Server) resetForm(c echo.Context) error {
	if err := readForm(c); err != nil {
		return err
	}
	if err := s.Demo.Reset(c.Request().Context()); err != nil {
		return err
	}
	return done(c, "/", "text", encode("The demo starts over"))
}

func (s *Server) actOnJob(c echo.Context, act func(id string) (job.Job, string, error)) error {
	id, err := paramID(c)
	if err == nil {
		err = readForm(c)
	}
	if err != nil {
		return err
	}
	j, text, err := act(id)
	if err != nil {
		return err
	}
	if back, ok := localPath(c.FormValue("back")); ok {
		c.Request().Form.Set("back", withActed(back, id))
	}
	return done(c, fmt.Sprintf("/jobs/%s#run-%d", id, j.Run), "job", encodeJob(j, true), "text", encode(text))
}

// withActed tells the page to which a form goes back which job it acted on.
func withActed(back, id string) string {
	u, err := url.Parse(back)
	if err != nil { // unreachable: localPath has parsed it
		return back
	}
	values := u.Query()
	values.Set("acted", id)
	u.RawQuery = values.Encode()
	return u.String()
}

// acted is where the job stands that a form just acted on: the page answers
// with what the database says, whatever the link says.
func (s *Server) acted(c echo.Context) *job.Change {
	id, err := job.ParseID(c.QueryParam("acted"))
	if err != nil {
		return nil
	}
	changes, err := s.View.Changes(c.Request().Context(), []string{id})
	if err != nil || len(changes) == 0 {
		return nil // the page itself is worth more than this line
	}
	return &changes[0]
}

// here is the address of the page that is asked for.
func here(r *http.Request) string {
	if !isRead(r) {
		return ""
	}
	return r.URL.RequestURI()
}

func (s *Server) actOnQueue(c echo.Context, text string, act func(name string) error) error {
	name, err := s.paramQueue(c)
	if err == nil {
		err = readForm(c)
	}
	if err == nil {
		err = act(name)
	}
	if err != nil {
		return err
	}
	return done(c, "/queues", "text", encode(text+" "+name))
}

// done answers an act: in place when a script asks, else by sending the browser
// back to the page with the form.
func done(c echo.Context, elsewhere, name string, value []byte, more ...any) error {
	if wantsJSON(c.Request()) {
		return c.JSONBlob(http.StatusOK, object(name, value, more...))
	}
	if page, ok := localPath(c.FormValue("back")); ok {
		elsewhere = page
	}
	return c.Redirect(http.StatusSeeOther, elsewhere)
}

// readForm reads a small form.
func readForm(c echo.Context) error { return readFormOf(c, maxSmall) }

// readFormOf reads a form of at most limit bytes, once.
func readFormOf(c echo.Context, limit int64) error {
	r := c.Request()
	if r.PostForm != nil {
		return nil
	}
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, echo.MIMEApplicationForm) {
		return &failure{mediaType, "", "send the fields as a form", nil}
	}
	if err := checkEncoding(r); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)
	if err := r.ParseForm(); err != nil {
		if f := describe(err); f.kind == tooLarge {
			return err
		}
		return &failure{malformed, "", "the form cannot be read", nil}
	}
	return nil
}

// localPath returns a form's way back if it stays on this host, as every
// browser understands it: one slash first, and nothing that a browser reads as
// another slash or skips.
func localPath(back string) (string, bool) {
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

// lastSegment is the last part of a route.
func lastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
