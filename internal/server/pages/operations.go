package pages

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/operation"
	"redrive/internal/server/web"
	"redrive/web/templates/operationpage"
)

// operations is the page /operations, the newest first.
func (p *Pages) operations(c echo.Context) error {
	after, err := web.Number(c, "after")
	if err != nil {
		return err
	}

	v := operationpage.List{Frame: p.frame(c, "Operations", "operations"), After: after}

	v.List, err = p.View.Operations(c.Request().Context(), after, web.PageLimit)
	if err != nil {
		return err
	}

	return p.Show(c, http.StatusOK, v.Page())
}

// operation is the page /operations/{id}: the preview, or the progress.
func (p *Pages) operation(c echo.Context) error {
	ctx := c.Request().Context()

	id, err := web.ParamOperation(c)
	if err != nil {
		return err
	}

	v := operationpage.View{
		Frame: p.frame(c, fmt.Sprintf("Operation %d", id), "operations"), Show: c.QueryParam("state"), UnknownType: p.Config.UnknownType,
	}

	v.Operation, v.Filter, err = p.View.OperationAndScope(ctx, id)
	if err != nil {
		return err
	}

	v.After, err = web.Number(c, "after")
	if err != nil {
		return err
	}

	show, err := web.ItemQuery(c)
	if err != nil {
		return err
	}

	// A search may have missed jobs that were not indexed when it ran.
	var r reads
	if v.Filter.Searches() {
		v.Indexing = p.View.Reindexing()
		into(&r, &v.Lag)(p.View.SearchLag(ctx))
	}

	into(&r, &v.Breakdown)(p.api.Breakdown(ctx, id))
	into(&r, &v.Items)(p.View.Items(ctx, id, show, v.After, web.PageLimit))
	into(&r, &v.Log)(p.View.OperationLog(ctx, id, web.CallerOf(c).Role.May(access.Manage)))
	into(&r, &v.Progress)(p.View.Progress(ctx, v.Frame.Now, v.Operation))

	v.Origin = p.api.SourceNamed(v.Progress.SourceRuns.Source)
	for i, o := range v.UnderWay { // the navigation says of it what the page says
		if o.ID == id {
			v.UnderWay[i] = p.shownOperation(v.Operation, v.Progress)
		}
	}

	if v.Operation.State == operation.Collecting { // until there is something to decide
		c.Response().Header().Set("Refresh", "1")
	}

	return p.show(c, r, v.Page())
}
