package server

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/webhook"
)

// forwardJob is POST /jobs/{id}/forward: the refused dead letter of the run
// that the caller saw is sent once more.
func (s *Server) forwardJob(c echo.Context) error {
	id, run, err := s.runAct(c)
	if err != nil {
		return err
	}
	j, err := s.forward(c.Request().Context(), id, run, s.actor("api", c))
	return answerJob(c, j, err)
}

// forward sends a refused dead letter once more and writes down what became of
// it, whether or not somebody still waits for the answer: the receiver may have
// taken it by then. All who do so at once share one delivery and its outcome.
func (s *Server) forward(ctx context.Context, id string, run int, by audit.Actor) (job.Job, error) {
	j, err, _ := s.forwards.Do(fmt.Sprintf("%s/%d", id, run), func() (any, error) {
		return s.forwardOnce(context.WithoutCancel(ctx), id, run, by)
	})
	return j.(job.Job), err
}

func (s *Server) forwardOnce(ctx context.Context, id string, run int, by audit.Actor) (job.Job, error) {
	d, err := s.View.Original(ctx, id) // the webhook gets the real thing
	if err != nil {
		return job.Job{}, err
	}
	letter, err := refusedLetter(d, run)
	if err != nil {
		return s.View.HideJob(d.Job), s.View.HideConflict(err)
	}
	sending, cancel := context.WithTimeout(ctx, webhook.Deadline)
	defer cancel()
	delivery := s.Deliver(sending, d.Job, letter)
	j, err := s.View.Resent(ctx, time.Now(), id, run, delivery, by)
	if err == nil && delivery.Problem != "" {
		err = &failure{notForwarded, "", strings.TrimRight(s.View.Text(delivery.Problem), ".") + "; the job is kept", nil}
	}
	return j, err
}

// refusedLetter is the dead letter to send again.
func refusedLetter(d history.Detail, run int) (job.DeadLetter, error) {
	for _, l := range d.Letters {
		if l.Run == run && d.Job.Run == run && d.Job.Letter == job.LetterRefused {
			return l, nil
		}
	}
	return job.DeadLetter{}, &job.Conflict{Job: d.Job, Problem: fmt.Sprintf(
		"the dead letter of run %d is not refused; the job is %s in run %d", run, d.Job.Status(), d.Job.Run)}
}

// forwardHost is where a queue forwards its dead letters, without credentials;
// empty when it does not.
func (s *Server) forwardHost(queue string) string {
	hook, ok := s.Config.Webhook(queue)
	if !ok {
		return ""
	}
	u, err := url.Parse(hook.URL)
	if err != nil { // unreachable: the configuration has parsed it
		return "a webhook"
	}
	return u.Host
}

// runAct reads an act on one run of a job.
func (s *Server) runAct(c echo.Context) (id string, run int, err error) {
	if id, err = paramID(c); err != nil {
		return "", 0, err
	}
	data, err := body(c, maxSmall)
	if err != nil {
		return "", 0, err
	}
	if err := (fields{"run": value(&run, "a whole number")}).read("", data); err != nil {
		return "", 0, err
	}
	return id, run, checkRun(run)
}
