package pages

import (
	"github.com/labstack/echo/v4"

	"redrive/internal/server/api"
	"redrive/web/templates/sourcepage"
)

// sources is the page /sources.
func (p *Pages) sources(c echo.Context) error {
	v := sourcepage.List{Frame: p.frame(c, "Sources", "sources")}
	var r reads
	for _, h := range p.Engine.Sources() {
		s := sourcepage.Source{Health: h}
		var err error
		s.Queues, s.Returning, s.Returned, err = p.api.DeadLettersOf(c.Request().Context(), h.Name)
		into(&r, &s)(s, err)
		v.Sources = append(v.Sources, s)
	}

	into(&r, &v.Unattached)(p.api.Unattached(c.Request().Context()))

	return p.show(c, r, v.Page())
}

// source is the page of one source.
func (p *Pages) source(c echo.Context) error {
	h, err := p.api.Source(c)
	if err != nil {
		return err
	}

	v := sourcepage.View{Frame: p.frame(c, h.Name, "sources"), Source: sourcepage.Source{Health: h}}
	v.AboutSource = h.Name
	var r reads
	v.Queues, v.Returning, v.Returned, err = p.api.DeadLettersOf(c.Request().Context(), h.Name)
	into(&r, &v.Queues)(v.Queues, err)
	into(&r, &v.Acts)(p.View.SourceActs(c.Request().Context(), h.Name, api.MaxActs))

	return p.show(c, r, v.Page())
}
