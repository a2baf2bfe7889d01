package pages

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/web/templates"
)

// operations is the page /operations.
func (p *Pages) operations(c echo.Context) error {
	after, err := web.Number(c, "after")
	if err != nil {
		return err
	}
	v := templates.Operations{Frame: p.frame(c, "Operations", "operations"), After: after}
	if v.List, err = p.View.Operations(c.Request().Context(), after, web.PageLimit); err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, v.Page())
}

// operation is the page /operations/{id}: a preview, or how far it is.
func (p *Pages) operation(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := web.ParamOperation(c)
	if err != nil {
		return err
	}
	v := templates.OperationPage{Show: c.QueryParam("state")}
	if v.Operation, v.Filter, err = p.View.OperationAndScope(ctx, id); err != nil {
		return err
	}
	if v.After, err = web.Number(c, "after"); err != nil {
		return err
	}
	show, err := web.ItemQuery(c)
	if err != nil {
		return err
	}
	v.Frame = p.frame(c, fmt.Sprintf("Operation %d", id), "operations")
	if v.Filter.Searches() {
		v.Filling = p.View.Reindexing()
		if v.Lag, err = p.View.SearchLag(ctx); err != nil {
			return err
		}
	}
	if v.Breakdown, err = p.View.Breakdown(ctx, id); err != nil {
		return err
	}
	if v.Items, err = p.View.Items(ctx, id, show, v.After, web.PageLimit); err != nil {
		return err
	}
	if v.Log, err = p.View.OperationLog(ctx, id); err != nil {
		return err
	}
	if v.Progress, err = p.View.Progress(ctx, v.Frame.Now, v.Operation); err != nil {
		return err
	}
	if v.Operation.State == operation.Collecting { // until there is something to decide
		c.Response().Header().Set("Refresh", "1")
	}
	return p.Show(c, http.StatusOK, v.Page())
}
