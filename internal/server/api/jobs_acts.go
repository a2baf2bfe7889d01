package api

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype/work"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/webhook"
	"redrive/internal/wire"
)

// jobActs are the acts on one run of a job. The caller names the run that they
// looked at, and the act refuses any other: a second click, a second person or a
// repeated request learns that it came second.
func (a *API) jobActs() []Act {
	acts := []Act{
		{
			Path: "/jobs/:id/replay", Says: "Starts the next run of a job", Request: work.ReplayRequest{},
			Answer: work.JobAnswer{}, Do: a.replay,
		},
		{
			Path: "/jobs/:id/reschedule", Says: "Moves a job that waits to another time", Request: work.RescheduleRequest{},
			Answer: work.JobAnswer{}, Do: a.reschedule,
		},
	}

	// These acts need to know the run and nothing else.
	for _, act := range []struct {
		name, says string
		do         func(context.Context, time.Time, string, int, audit.Actor) (job.Job, error)
		text       string
	}{
		{"discard", "Puts a dead letter into the trash", a.View.Discard, "Discarded"},
		{"cancel", "Cancels a job that waits", a.View.Cancel, "Cancelled"},
		// In a text, jobOutcome puts the status that the job has now for {status}.
		{"restore", "Takes a job out of the trash", a.View.Restore, "Restored · {status}"},
		{"forward", "Sends a refused dead letter again", a.resend, "Forwarded · {status}"},
	} {
		do := func(c echo.Context) (Outcome, error) {
			id, err := web.ParamID(c)
			if err != nil {
				return Outcome{}, err
			}

			run, err := ReadRun(c)
			if err != nil {
				return Outcome{}, err
			}

			j, err := act.do(c.Request().Context(), time.Now(), id, run, web.Actor(c))

			return jobOutcome(j, act.text), err
		}
		acts = append(acts, Act{
			Path: "/jobs/:id/" + act.name, Says: act.says, Request: work.RunRequest{}, Answer: work.JobAnswer{}, Do: do,
		})
	}

	return acts
}

// jobOutcome is what came of an act on a job.
func jobOutcome(j job.Job, text string) Outcome {
	return Outcome{
		Says: work.JobAnswer{Job: fullJobOf(j)}, Job: j.ID, Page: fmt.Sprintf("/jobs/%s#run-%d", j.ID, j.Run),
		Text: strings.NewReplacer("{status}", string(j.Status()), "{run}", strconv.Itoa(j.Run)).Replace(text),
	}
}

// ReadRun reads the run that a form or a body names.
func ReadRun(c echo.Context) (run int, err error) {
	if web.IsForm(c) {
		err = web.ReadForm(c)
		if err == nil {
			run = formRun(c)
		}

		return run, cmp.Or(err, checkRun(run))
	}

	var in work.RunRequest
	err = readSmall(c, &in, nil)

	return in.Run, cmp.Or(err, checkRun(in.Run))
}

// formRun is the run that a form names, 0 where that is none.
func formRun(c echo.Context) int {
	run, err := strconv.Atoi(c.FormValue("run"))
	if err != nil {
		return 0
	}

	return run
}

// checkRun refuses a request that names no run. There is no default, because the
// newest run may not be the one that the person saw.
func checkRun(run int) error {
	if run < 1 {
		return &invalid.Error{Field: "run", Problem: "must name the run that you looked at, 1 or higher"}
	}
	return nil
}

// replay starts the next run. A program can say in the same body what should be
// different about it; people use the editor, which is a page of its own.
func (a *API) replay(c echo.Context) (Outcome, error) {
	id, err := web.ParamID(c)
	if err != nil {
		return Outcome{}, err
	}

	var run int
	var want Change
	if web.IsForm(c) {
		run, err = ReadRun(c)
		if text := c.FormValue("mode"); text != "" && err == nil {
			want.Mode, err = ReadMode(text)
			err = aboutField("mode", err)
		}
	} else {
		run, want, err = readChange(c)
	}

	if err != nil {
		return Outcome{}, err
	}

	// A replay as it was needs no look at the original.
	if want.empty() {
		j, err := a.View.Replay(c.Request().Context(), time.Now(), id, run, web.Actor(c))
		return jobOutcome(j, replayed), err
	}

	// A change is compared with the real payload, not with the redacted one.
	d, err := a.View.Original(c.Request().Context(), id)
	if err != nil {
		return Outcome{}, err
	}

	edit, wrong := a.Edit(d.Job, want)
	if len(wrong) > 0 {
		return Outcome{}, wrong[0]
	}

	return a.ReplayEdited(c, id, run, edit)
}

const replayed = "Replayed, run {run} · {status}"

// ReplayEdited starts the next run of a job with changes.
func (a *API) ReplayEdited(c echo.Context, id string, run int, edit job.Edit) (Outcome, error) {
	j, err := a.View.ReplayEdited(c.Request().Context(), time.Now(), id, run, edit, web.Actor(c))
	return jobOutcome(j, replayed), err
}

// reschedule moves a job that waits to the time that the request names.
func (a *API) reschedule(c echo.Context) (Outcome, error) {
	id, err := web.ParamID(c)
	if err != nil {
		return Outcome{}, err
	}

	run, at, err := readReschedule(c, time.Now())
	if err != nil {
		return Outcome{}, err
	}

	now := time.Now()
	j, err := a.View.Reschedule(c.Request().Context(), now, id, run, at, web.Actor(c))

	// A time that has come makes the job run as soon as possible.
	if !at.After(now) {
		return jobOutcome(j, "It runs as soon as a worker is free"), err
	}

	return jobOutcome(j, "It runs "+j.RunAt.Format("on 2 January 2006 at 15:04:05 UTC")), err
}

// readReschedule reads the run that the caller looked at, and when the job shall run.
// A page says the time as its reader typed it.
func readReschedule(c echo.Context, now time.Time) (run int, at time.Time, err error) {
	var when times
	if !web.IsForm(c) {
		var in work.RescheduleRequest
		err = readSmall(c, &in, nil)
		run, when = in.Run, times{runAt: momentOf(in.RunAt), delay: endOf(in.Delay, now)}
	} else {
		err = web.ReadForm(c)
		if err == nil {
			run = formRun(c)
			err = cmp.Or(
				typedMoment(c, "run_at", &when.runAt, LocalMoment),
				typedMoment(c, "delay", &when.delay, func(text string) (time.Time, error) {
					d, err := wire.ParseDuration(text)
					return now.Add(d), err
				}),
			)
		}
	}

	var j job.Job
	err = cmp.Or(err, checkRun(run), when.set(&j, now))
	if err == nil && j.RunAt.IsZero() {
		err = &invalid.Error{Field: "run_at", Problem: "must say when the job shall run; or send delay, counted from now: 0s runs it now"}
	}

	return run, j.RunAt.UTC().Truncate(time.Microsecond), err
}

// typedMoment reads a field of a form; an empty one says nothing.
func typedMoment(c echo.Context, field string, to *time.Time, read func(string) (time.Time, error)) (err error) {
	text := strings.TrimSpace(c.FormValue(field))
	if text == "" {
		return nil
	}

	*to, err = read(text)
	if err != nil {
		return &invalid.Error{Field: field, Problem: err.Error()}
	}

	return nil
}

// LocalMoment reads a time, as UTC, in the format of a browser's input or in
// that of the API.
func LocalMoment(s string) (time.Time, error) {
	// Browsers send a T between date and time, and people type a space; seconds may be missing.
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 0 && t.Year() <= 9999 {
			return t.UTC(), nil
		}
	}

	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-01-31 15:04", clip.Text(s, 32))
}

// resend sends a refused dead letter again and records the outcome even if the
// caller has gone by then, because the receiver may have accepted it. Callers
// who ask at the same time share one delivery and its outcome: a receiver must
// not get the dead letter twice because two people clicked.
func (a *API) resend(ctx context.Context, _ time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	j, err, _ := a.resends.Do(fmt.Sprintf("%s/%d", id, run), func() (any, error) {
		return a.resendOnce(context.WithoutCancel(ctx), id, run, by)
	})
	return j.(job.Job), err
}

// resendOnce sends the dead letter as it is, not redacted, since the receiver needs
// the real payload. Whatever it returns is redacted again.
func (a *API) resendOnce(ctx context.Context, id string, run int, by audit.Actor) (job.Job, error) {
	d, err := a.View.Original(ctx, id) // the webhook gets the real thing
	if err != nil {
		return job.Job{}, err
	}

	deadLetter, err := refusedDeadLetter(d, run)
	if err != nil {
		return a.View.HideJob(d.Job), a.View.HideConflict(err)
	}

	sending, cancel := context.WithTimeout(ctx, webhook.Deadline)
	defer cancel()

	delivery := a.Engine.Deliver(sending, d.Job, deadLetter)

	// The outcome is recorded in any case. A second refusal is an error to the caller.
	j, err := a.View.Resent(ctx, time.Now(), id, run, delivery, by)
	if err == nil && delivery.Problem != "" {
		err = problem.New(problem.ResendRefused, strings.TrimRight(a.View.Text(delivery.Problem), ".")+"; the job is kept")
	}

	return j, err
}

// refusedDeadLetter finds the dead letter to send again. Only the dead letter of the
// current run counts: an older one has been replaced by what the job did since.
func refusedDeadLetter(d history.Detail, run int) (job.DeadLetter, error) {
	for _, l := range d.DeadLetters {
		if l.Run == run && d.Job.Run == run && d.Job.DeadLetter == job.DeadLetterRefused {
			return l, nil
		}
	}

	return job.DeadLetter{}, &job.Conflict{Job: d.Job, Problem: fmt.Sprintf(
		"the dead letter of run %d is not refused; the job is %s in run %d", run, d.Job.Status(), d.Job.Run)}
}
