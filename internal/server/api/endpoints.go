package api

import (
	_ "embed" // the OpenAPI document
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/server/web"
)

// An Endpoint is a row of the table of the API: a route, and what the OpenAPI document
// says about it.
type Endpoint struct {
	Method     string
	Path       string // as the router writes it: /api/v1/jobs/:id
	Need       access.Permission
	Says       string   // what a request does, in a sentence
	Parameters []string // of the query

	Request any    // a value of the type of the body, which is empty; nil: there is no body
	Sends   string // a media type that the body may have beside JSON
	Keyed   bool   // a request may have an idempotency key

	Answers []any  // empty values of the types of the answers; of a file, of its rows
	Kind    string // the media type of the answers; default: JSON
	Created bool   // something may be made: 201

	file   bool
	handle echo.HandlerFunc
}

// document is the OpenAPI document, which a test writes from the table and the types:
// go test ./internal/server/api -run OpenAPI -update
//
//go:embed openapi.json
var document []byte

// Endpoints is the table of the API. The exports are in it although they live outside
// /api/v1, because people open them in a browser. The caller's own name is known to the
// server, which gives the function that answers with it.
func (a *API) Endpoints(me func(echo.Context) (apitype.Caller, error)) []Endpoint {
	who := getEndpoint(a, "/me", "Says who the caller is, and what they may do", me)
	who.Need = access.Public
	all := slices.Concat(
		[]Endpoint{who, a.specification()},
		a.jobEndpoints(), a.listEndpoints(), a.operationEndpoints(), a.accessEndpoints(), a.exportEndpoints(),
	)

	add := func(need access.Permission, acts []Act) {
		for _, act := range acts {
			all = append(all, act.endpoint(need))
		}
	}
	add(access.Operate, a.Acts())
	add(access.Manage, a.ManageActs())
	add(access.Manage, a.AccessActs())

	return all
}

// Routes adds the routes of the table.
func (a *API) Routes(r *web.Routes, me func(echo.Context) (apitype.Caller, error)) {
	for _, e := range a.Endpoints(me) {
		switch {
		case e.file:
			r.File(e.Path, e.Need, e.handle, e.Parameters...)
		case e.Method == http.MethodGet:
			r.Get(e.Path, e.Need, e.handle, e.Parameters...)
		default:
			r.Post(e.Path, e.Need, e.handle)
		}
	}
}

// getEndpoint is an endpoint that only reads.
func getEndpoint[T any](a *API, path, says string, h func(echo.Context) (T, error), parameters ...string) Endpoint {
	return Endpoint{
		Method:     http.MethodGet,
		Path:       v1 + path,
		Need:       access.View,
		Says:       says,
		Parameters: parameters,
		Answers:    []any{*new(T)},
		handle:     answered(a, h),
	}
}

// listEndpoint is getEndpoint for one page of a list.
func listEndpoint[T any](a *API, path, says string, h func(echo.Context) (T, error), parameters ...string) Endpoint {
	return getEndpoint(a, path, says, h, append(parameters, "limit")...)
}

// enqueues is an endpoint that brings jobs.
func enqueues(path, says string, request any, h echo.HandlerFunc, answers ...any) Endpoint {
	return Endpoint{
		Method:  http.MethodPost,
		Path:    v1 + path,
		Need:    access.Enqueue,
		Says:    says,
		Request: request,
		Answers: answers,
		Created: true,
		handle:  h,
	}
}

// specification is GET /openapi.json.
func (a *API) specification() Endpoint {
	return Endpoint{
		Method: http.MethodGet,
		Path:   v1 + "/openapi.json",
		Need:   access.View,
		Says:   "Returns this document",
		handle: func(c echo.Context) error { return a.Send(c, http.StatusOK, echo.MIMEApplicationJSON, document) },
	}
}

// jobEndpoints read jobs, and bring them.
func (a *API) jobEndpoints() []Endpoint {
	envelope := Endpoint{
		Method:     http.MethodGet,
		Path:       v1 + "/jobs/:id/envelope",
		Need:       access.View,
		Says:       "Returns the BabelQueue envelope of a job, as a consumer would have left it or as it came",
		Parameters: []string{"original"},
		handle:     a.envelope,
	}
	reveal := Endpoint{
		Method:  http.MethodPost,
		Path:    v1 + "/jobs/:id/reveal",
		Need:    access.Reveal,
		Says:    "Returns a job with nothing hidden, which the audit log records",
		Request: apitype.Nothing{},
		Answers: []any{work.JobDetail{}},
		handle:  answered(a, a.revealed),
	}
	envelopes := enqueues("/queues/:name/envelopes", "Takes BabelQueue envelopes over; one that cannot be read becomes a dead letter",
		apitype.Payload{}, a.enqueueEnvelopes, work.EnvelopesTaken{})

	// Beside one envelope as JSON, the body can have an envelope on each line.
	envelopes.Sends = "application/x-ndjson"

	// Of the two answers, the receipt is for callers that may enqueue jobs and not look at
	// them.
	one := enqueues("/jobs", "Enqueues a job", work.NewJob{}, a.enqueue, work.Enqueued{}, work.EnqueuedReceipt{})
	batch := enqueues("/jobs/batch", "Enqueues several jobs, either all or none", work.NewJobs{}, a.enqueueBatch,
		work.EnqueuedBatch{}, work.EnqueuedBatchReceipt{})
	one.Keyed, batch.Keyed = true, true

	return []Endpoint{
		listEndpoint(a, "/jobs", "Lists jobs, by default the newest first", a.jobs, web.ListParameters()...),
		getEndpoint(a, "/jobs/count", "Counts the jobs that a filter selects", a.countJobs, web.FilterParameters()...),
		getEndpoint(a, "/jobs/:id", "Returns everything about a job", a.job, "attempts_after"),
		envelope,
		reveal,
		one,
		batch,
		envelopes,
	}
}

// listEndpoints read what there is beside jobs.
func (a *API) listEndpoints() []Endpoint {
	return []Endpoint{
		listEndpoint(a, "/dead-letters", "Lists the open dead letters, each with its job", a.deadLetters, web.ListParameters()...),
		getEndpoint(a, "/dead-letters/fill", "Says how full the dead-letter queue is", a.usage),
		getEndpoint(a, "/retention", "Says how long jobs are kept, what will be removed and what was", a.retention),
		listEndpoint(a, "/trash", "Lists what was discarded and can be restored", a.trash, web.ListParameters()...),
		getEndpoint(a, "/facets", "Lists the values to which a list of jobs can be narrowed", a.facets, web.FilterParameters()...),
		getEndpoint(a, "/counters", "Returns the totals since the beginning, which never fall", a.counters),
		getEndpoint(a, "/queues", "Lists the queues that had a job, by name", a.queues, "after"),
		getEndpoint(a, "/queues/:name", "Returns a queue", a.queue),
		getEndpoint(a, "/sources", "Lists the attached sources, and what is left of others", a.sources),
		getEndpoint(a, "/sources/:name", "Returns an attached source with the newest requests to it", a.source),
		getEndpoint(a, "/workers", "Returns the worker in this process, and the jobs that run", a.workers),
		getEndpoint(a, "/policies", "Lists the retry policies of the configuration, and the presets", a.policies),
		listEndpoint(a, "/failures", "Lists error groups", a.groups, web.GroupParameters()...),
		getEndpoint(a, "/failures/classes", "Sums up error groups by the classes of their errors", a.classes,
			"state", "queue", "source", "type", "class"),
		getEndpoint(a, "/failures/:fingerprint", "Returns an error group", a.group),
		listEndpoint(a, "/audit", "Lists the entries of the audit log, the newest first", a.audit, web.AuditParameters()...),
	}
}

// operationEndpoints read operations.
func (a *API) operationEndpoints() []Endpoint {
	return []Endpoint{
		listEndpoint(a, "/operations", "Lists operations on many jobs, the newest first", a.operations, "after"),
		getEndpoint(a, "/operations/:id", "Returns an operation with its progress and its jobs in numbers", a.operation),
		listEndpoint(a, "/operations/:id/items", "Lists the jobs of an operation, in the order of work", a.items, "state", "after"),
		getEndpoint(a, "/operations/:id/rate", "Says how many jobs were done in each step of the operation's time", a.rate),
	}
}

// accessEndpoints read who may do what.
func (a *API) accessEndpoints() []Endpoint {
	all := []Endpoint{
		getEndpoint(a, "/users", "Lists the users", a.users),
		getEndpoint(a, "/sessions", "Lists who is logged in", a.sessions),
		getEndpoint(a, "/tokens", "Lists the tokens", a.tokens),
	}
	for i := range all {
		all[i].Need = access.Manage
	}

	return all
}

// exportEndpoints write lists as files.
func (a *API) exportEndpoints() []Endpoint {
	return slices.Concat(
		a.files("/export", "the jobs of a filter with their payloads", work.FullJob{}, a.exportJobs, web.ListParameters()...),
		a.files("/failures", "error groups", work.Group{}, a.exportGroups, web.GroupParameters()...),
		a.files("/audit", "the audit log", apitype.AuditEntry{}, a.exportAudit, web.AuditParameters()...),
		a.files("/operations/:id/items", "the jobs of an operation", work.OperationItem{}, a.exportItems, "state", "after"),
	)
}

// endpoint is the row of an act.
func (act Act) endpoint(need access.Permission) Endpoint {
	return Endpoint{
		Method:  http.MethodPost,
		Path:    v1 + act.Path,
		Need:    need,
		Says:    act.Says,
		Request: act.Request,
		Answers: []any{act.Answer},
		Created: act.Created,
		Keyed:   act.Keyed,
		handle:  act.answer,
	}
}
