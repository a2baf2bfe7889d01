// Package pages draws the pages and answers their forms.
//
// A handler reads what its page shows, top to bottom, into one typed view and
// hands it to [Pages.Show], which renders into a buffer first: an error never
// arrives after half a page. The acts behind the forms are those of package api.
// With scripts a form asks for JSON, and the answer is shown in place; without
// them the browser is redirected to the page that it came from.
//
// Everything that is drawn comes through package view and is redacted. The one
// exception is the answer to a reveal.
package pages

import (
	"context"
	"net/http"
	"sync"
	"time"

	"redrive/internal/access"
	"redrive/internal/server/api"
	"redrive/internal/server/web"
	"redrive/web/templates"
)

// Demo is what the banner of the demo shows and does.
type Demo interface {
	Faults() []templates.Fault
	Used() bool // whether a visitor has broken or fixed one
	SetFault(name string, broken bool) error
	Reset(ctx context.Context) error
}

// Pages draws the pages of a site.
type Pages struct {
	*web.Site
	options Options
	api     *api.API
	began   time.Time
	buffers sync.Pool // of *bytes.Buffer
}

// Options are what the pages need to know about the server.
type Options struct {
	Open     func() bool              // whether no login is required
	Insecure bool                     // reachable from the network, and declared open to everyone
	BasePath string                   // below which everything is
	HTTPS    func(*http.Request) bool // whether a request came over https
	Demo     Demo                     // nil outside demo mode
}

// New returns the pages of a site. The worker in this process has been running
// since began.
func New(site *web.Site, a *api.API, began time.Time, o Options) *Pages {
	return &Pages{Site: site, options: o, api: a, began: began}
}

// Routes adds the pages and their forms, each with the permission that it needs.
// A form has the address of its act, so that pages and API cannot come apart.
func (p *Pages) Routes(r *web.Routes) {
	r.Page("/", access.View, p.overview)
	r.Page("/jobs", access.View, p.jobs, web.ListParameters()...)
	r.Page("/jobs/:id", access.View, p.job, "payload")
	r.Page("/jobs/:id/attempts", access.View, p.attempts, "after")
	r.Get("/jobs/:id/payload", access.View, p.payload)
	r.Page("/jobs/:id/replay", access.View, p.edit)
	r.Post("/jobs/:id/reveal", access.Reveal, p.reveal)
	r.Page("/dead-letters", access.View, p.deadLetters, web.ListParameters()...)
	r.Page("/trash", access.View, p.trash, web.ListParameters()...)
	r.Page("/failures", access.View, p.failures, web.GroupParameters()...)
	r.Page("/failures/:fingerprint", access.View, p.failure)
	r.Page("/operations", access.View, p.operations, "after")
	r.Page("/operations/:id", access.View, p.operation, "state", "after")
	r.Page("/queues", access.View, p.queues, "name")
	r.Page("/queues/:name", access.View, p.queue)
	r.Page("/sources", access.View, p.sources)
	r.Page("/sources/:name", access.View, p.source)
	r.Page("/retention", access.View, p.retention)
	r.Page("/workers", access.View, p.workers)
	r.Page("/policies", access.View, p.policies, policyParameters()...)
	r.Page("/audit", access.View, p.audit, web.AuditParameters()...)
	r.Page("/access", access.Manage, p.access)
	r.Get("/static/:file", access.Public, p.static, web.AnyParameter)

	// The forms do what the acts of the API do, at the same paths without /api/v1.
	for _, act := range p.api.Acts() {
		r.Post(act.Path, access.Operate, p.form(act))
	}

	for _, act := range p.api.ManageActs() {
		r.Post(act.Path, access.Manage, p.form(act))
	}

	// All that changes users, sessions and tokens is below /access.
	for _, act := range p.api.AccessActs() {
		r.Post("/access"+act.Path, access.Manage, p.accessForm(act))
	}

	if p.options.Demo != nil {
		r.Post("/demo/faults/:name", access.Operate, p.setFault)
		r.Post("/demo/reset", access.Operate, p.resetDemo)
	}
}
