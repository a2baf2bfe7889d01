package pages

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/invalid"
	"redrive/internal/server/web"
	"redrive/web/templates"
)

// audit is the page /audit.
func (p *Pages) audit(c echo.Context) error {
	f, after, err := web.AuditQuery(c)
	v := templates.Audit{Frame: p.frame(c, "Audit", "audit"), Filter: f, After: after, Own: f.Reveals != ""}
	if wrong := new(invalid.Error); errors.As(err, &wrong) {
		v.Errors = byField([]*invalid.Error{wrong})
		return p.Show(c, http.StatusBadRequest, v.Page())
	} else if err != nil {
		return err
	}
	v.List, err = p.View.Audit(c.Request().Context(), f, after, web.PageLimit)
	if v.Slow, err = web.Tolerate(err); err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, v.Page())
}
