package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/internal/source"
	"redrive/internal/wire"
)

// countLimit is how far the jobs of a filter are counted.
const countLimit = 100_000

// searched adds how many jobs cannot be found by their texts yet. Without it an
// empty list would claim that there is no such failure.
func (a *API) searched(c echo.Context, says web.Object, f filter.Filter) (web.Object, error) {
	if !f.Searches() {
		return says, nil
	}
	lag, err := a.View.SearchLag(c.Request().Context())
	if lag > 0 {
		says = append(says, "not_searchable_yet", lag)
	}
	return says, err
}

// jobs is GET /jobs. Lists leave payloads out; GET /jobs/{id} returns them.
func (a *API) jobs(c echo.Context) (web.Object, error) {
	f, found, slow, err := search(c, web.Query, a.View.Jobs)
	if err != nil {
		return nil, err
	}
	rows := web.List(found.Jobs, func(j job.Job) web.Object { return shapeListed(a.Begun(j)) })
	return a.searched(c, page("jobs", rows, found.Next.String(), slow), f)
}

// letters is GET /dead-letters: the open dead letters, each with its job.
func (a *API) letters(c echo.Context) (web.Object, error) {
	f, found, slow, err := search(c, web.DeadLettersQuery, a.View.Letters)
	if err != nil {
		return nil, err
	}
	rows := web.List(found.Letters, func(l filter.LetterRow) web.Object {
		return web.Object{"letter", shapeListedLetter(l.DeadLetter), "job", shapeListed(l.Job)}
	})
	return a.searched(c, page("dead_letters", rows, found.Next.String(), slow), f)
}

// trash is GET /trash: what was discarded, by whom, and when it will be purged.
// Until then it can be restored.
func (a *API) trash(c echo.Context) (web.Object, error) {
	_, found, slow, err := search(c, web.TrashQuery, a.View.Jobs)
	if err != nil {
		return nil, err
	}
	was, err := a.View.Trashed(c.Request().Context(), found.Jobs)
	rows := web.List(found.Jobs, func(j job.Job) web.Object {
		w, purged := was[j.Seq], time.Time{}
		if keeps := a.Config.Retention().Trash; keeps > 0 {
			purged = w.At.Add(keeps)
		}
		return web.Object{
			"job_id", j.ID, "run", j.Run, "type", j.Type, "queue", j.Queue, "was", job.Job{State: w.State, Letter: w.Letter}.Status(),
			"discarded_at", w.At, "discarded_by", w.By, "purged_at?", purged,
		}
	})
	return page("trash", rows, found.Next.String(), slow), err
}

// job is GET /jobs/{id}, with its newest attempts or those of an older page.
func (a *API) job(c echo.Context) (web.Object, error) {
	before, err := web.Number(c, "attempts_after")
	if err != nil {
		return nil, err
	}
	d, err := a.Job(c, before)
	if err != nil {
		return nil, err
	}
	return a.Detail(c, d)
}

// Detail is everything about a job, with what people did to it.
func (a *API) Detail(c echo.Context, d history.Detail) (web.Object, error) {
	trail, err := a.Trail(c, d.Job.ID)
	replay := func(r history.Replay) web.Object { return shapeReplay(d.Job, r) }
	var acts []source.Act // on the source of the job
	if d.Mirrored != nil {
		acts = d.Mirrored.Acts
	}
	return web.Object{
		"job", shapeWholeJob(d.Job), "attempts", shapeAttempts(d), "attempts_total", d.Total, "attempts_next?", d.Before(),
		"dead_letters", web.List(d.Letters, shapeLetter), "replays", web.List(d.Replays, replay), "operations", web.List(d.Bulk, shapeBulkAct),
		"acts?", web.List(acts, shapeAct), "source_reports?", a.sourceReports(d.Job.Source),
		"group", d.Group.Fingerprint, "trail", web.List(trail, shapeEntry),
	}, err
}

// Reveal is everything about a job with nothing redacted. Who asked is in the
// audit log before anything is shown.
func (a *API) Reveal(c echo.Context) (history.Detail, error) {
	id, err := web.ParamID(c)
	if err == nil {
		err = readNothing(c)
	}
	if err != nil {
		return history.Detail{}, err
	}
	d, err := a.View.Reveal(c.Request().Context(), time.Now(), id, web.Actor(c))
	d.Job = a.Begun(d.Job)
	return d, err
}

// facets is GET /facets: the values to which a list can be narrowed, with the
// number of jobs of each.
func (a *API) facets(c echo.Context) (web.Object, error) {
	f, _, wrong := web.Query(c.QueryParams())
	if len(wrong) > 0 {
		return nil, web.InAddress(wrong[0])
	}
	facets, err := a.View.Facets(c.Request().Context(), f)
	return web.Object{
		"reasons", web.List(facets.Reasons, func(r filter.ReasonCount) web.Object {
			return shapeFacet(filter.NameCount{Name: string(r.Reason), Count: r.Count})
		}),
		"queues", web.List(facets.Queues, shapeFacet), "types", web.List(facets.Types, shapeFacet),
	}, err
}

// shapeFacet is a value of a filter with the number of jobs that have it.
func shapeFacet(n filter.NameCount) web.Object { return web.Object{"value", n.Name, "count", n.Count} }

// countJobs is GET /jobs/count: how many jobs a filter selects, up to a limit
// beyond which "more" says that there are others. A count that takes too long,
// or that waits for the search index, is incomplete and has no number.
func (a *API) countJobs(c echo.Context) (web.Object, error) {
	f, _, wrong := web.Query(c.QueryParams())
	if len(wrong) > 0 {
		return nil, web.InAddress(wrong[0])
	}
	n, more, err := a.View.Count(c.Request().Context(), f, countLimit)
	if slow, err := web.Tolerate(err); slow || err != nil {
		return web.Object{"incomplete", true}, err
	}
	return web.Object{"count", n, "more", more}, nil
}

// counters is GET /counters: the totals since the beginning. They never fall, so
// a program can compute rates from them.
func (a *API) counters(c echo.Context) error { return c.JSON(http.StatusOK, a.View.Snapshot().Totals) }

// maxListedText is what a row of a list holds of an error, in bytes, as on pages.
// Two hundred rows with all of theirs would be dozens of megabytes.
const maxListedText = 300

// shapeListed is a job as a row of a list: a long error is cut, and clipped names
// it. GET /jobs/{id} has all of it.
func shapeListed(j job.Job) web.Object {
	var clipped []string
	if len(j.Error.Message) > maxListedText {
		j.Error.Message, clipped = clip.Text(j.Error.Message, maxListedText), []string{"error.message"}
	}
	return append(shapeJob(j), "clipped?", clipped)
}

// shapeListedLetter is a dead letter as a row of a list, with a long error cut.
func shapeListedLetter(l job.DeadLetter) web.Object {
	var clipped []string
	if len(l.Error) > maxListedText {
		l.Error, clipped = clip.Text(l.Error, maxListedText), []string{"error"}
	}
	return append(shapeLetter(l), "clipped?", clipped)
}

// shapeJob is a job with everything but its payload.
func shapeJob(j job.Job) web.Object {
	return web.Object{
		"id", j.ID, "type", j.Type, "queue", j.Queue, "state", j.State,
		"status", j.Status(), // the state, told apart: dead_letter, dlq_failed, held
		"run", j.Run, "attempts?", said(j, j.Attempts), "max_attempts?", said(j, j.MaxAttempts()), "execution", j.Execution,
		"priority?", own(j, j.Priority), "meta?", j.Meta, "policy?", policyOf(j), "origins?", j.Origins, "ttr?", timeLimitOf(j),
		"run_at?", j.RunAt, "expires_at?", j.ExpiresAt, "enqueued_at?", j.EnqueuedAt, "changed_at?", j.ChangedAt,
		"started_at?", j.StartedAt, "finished_at?", j.FinishedAt, "worker?", j.Worker, "reason?", j.Reason,
		"added_at?", addedAt(j), "at_source?", source.AtSource(j), "returned_until?", returnedUntil(j, time.Now()),
		"returned?", source.Returned(j, time.Now()), "replay_unknown?", source.InDoubt(j),
		"error?", shapeError(j.Error, ""), "trace_id?", j.TraceID, "message_id?", j.MessageID, "note?", j.Note,
	}
}

// addedAt is when Redrive saw a job of a source first. Its own jobs were enqueued then.
func addedAt(j job.Job) time.Time {
	if j.Source == "" {
		return time.Time{}
	}
	return source.AddedAt(j)
}

// returnedUntil is when a job that its source has will count as returned; zero if that is
// not to come.
func returnedUntil(j job.Job, now time.Time) time.Time {
	if !source.AtSource(j) || source.Returned(j, now) {
		return time.Time{}
	}
	return source.ReturnsAt(j)
}

// own is a number that Redrive decides for its own jobs. It says nothing of a job of a
// source, which it never runs.
func own(j job.Job, n int) *int {
	if j.Source != "" {
		return nil
	}
	return &n
}

// timeLimitOf is the longest that an attempt may take; nothing for a job of a source.
func timeLimitOf(j job.Job) web.Raw {
	if j.Source != "" {
		return nil
	}
	return web.Encode(j.Timeout)
}

// said is a number that a source may not say of its job, which is zero then.
func said(j job.Job, n int) *int {
	if n == 0 {
		return own(j, n)
	}
	return &n
}

// policyOf is the policy by which Redrive retries a job; nothing for a job of a source.
func policyOf(j job.Job) json.RawMessage {
	if j.Source != "" {
		return nil
	}
	return wire.EncodePolicy(j.Policy)
}

// shapeWholeJob is a job with its payload, which is written as the bytes that
// were received: an encoder would change large numbers, white space and the
// order of members.
func shapeWholeJob(j job.Job) web.Object {
	payload := web.Raw(j.Payload)
	if !json.Valid(payload) { // it did not come through the API
		payload = web.Encode(strings.ToValidUTF8(string(payload), "\uFFFD"))
	}
	return append(shapeJob(j), "payload", payload)
}

// shapeError is an error, or nothing when there was none.
func shapeError(e job.ErrorInfo, trace string) web.Object {
	if e == (job.ErrorInfo{}) {
		return nil
	}
	return web.Object{"type", e.Type, "message", e.Message, "trace?", trace}
}

// shapeAttempts lists a page of the attempts of a job, and last the execution under way.
func shapeAttempts(d history.Detail) []web.Object {
	all := web.List(d.Attempts, func(a job.Attempt) web.Object {
		o := web.Object{
			"run", a.Run, "number?", a.Number, "execution", a.Execution, "worker?", a.Worker,
			"started_at?", a.StartedAt, "finished_at?", a.FinishedAt, "outcome?", a.Outcome,
			"error?", shapeError(a.Error, a.Trace), "action?", a.Action, "decided_by?", a.DecidedBy,
		}
		if d := a.Delay; d != nil {
			o = append(o, "delay_ms", millis(d.Final), "delay", web.Object{
				"source", d.Source, // policy, handler or rule
				"raw_ms", millis(d.Raw), "capped_ms", millis(d.Capped), "factor", d.Factor, "final_ms", millis(d.Final),
			})
		}
		return append(o, "note?", a.Note)
	})
	if j := d.Job; j.State == job.Active && d.Following == nil {
		all = append(all, web.Object{"run", j.Run, "execution", j.Execution, "worker?", j.Worker, "started_at?", j.StartedAt})
	}
	return all
}

// shapeReplay is a run that was replayed. The member changed says that the next
// run differs in something.
func shapeReplay(j job.Job, r history.Replay) web.Object {
	return web.Object{
		"run", r.Run, "state", r.State, "reason?", r.Reason, "attempts?", said(j, r.Attempts),
		"at", r.At, "by", r.By, "changed?", r.Earlier != nil,
	}
}

// shapeBulkAct is what an operation on many jobs did to one.
func shapeBulkAct(a operation.Act) web.Object {
	return web.Object{"operation", a.Operation, "kind", a.Kind, "run", a.Run, "at", a.At, "by", a.By}
}

// shapeLetter is a dead letter with the acts that took it out of the queue
// again.
func shapeLetter(l job.DeadLetter) web.Object {
	return web.Object{
		"job_id", l.JobID, "run", l.Run, "reason", l.Reason, "error", l.Error, "exception", l.Exception, "failed_at?", l.FailedAt,
		"original_queue", l.Queue, "attempts?", said(job.Job{Source: job.SourceOf(l.Queue)}, l.Attempts),
		"cause?", l.Cause, "refused?", l.Refused, "problem?", l.Problem,
		"forwarded_to?", l.ForwardedTo, "forwarded_at?", l.ForwardedAt, "replayed_at?", l.ReplayedAt, "replayed_by?", l.ReplayedBy,
		"discarded_at?", l.DiscardedAt, "discarded_by?", l.DiscardedBy,
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
