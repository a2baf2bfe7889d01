package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/server/web"
)

// live is /live: a websocket, or its polling twin when no upgrade is asked for.
func (s *Server) live(c echo.Context) error {
	if c.IsWebSocket() {
		who := web.CallerOf(c)
		s.Hub.Serve(c.Response(), c.Request(), live.Pass{
			Address: c.RealIP(), Valid: func(ctx context.Context) bool { return s.stillAllowed(ctx, who, access.View) },
		})
		return nil
	}
	ids, err := paramIDs(c)
	if err != nil {
		return err
	}
	list, err := paramList(c)
	if err != nil {
		return err
	}
	data, err := s.Hub.Poll(c.Request().Context(), ids, list)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, append(data, '\n'))
}

// paramList reads which list a page shows: its filter and its first row.
func paramList(c echo.Context) (l live.List, err error) {
	l.Filter = filter.Filter{Status: job.Status(c.QueryParam("state")), Queue: c.QueryParam("queue"), Type: c.QueryParam("type")}
	if err := l.Filter.Check(); err != nil {
		return l, web.InAddress(err)
	}
	l.First, err = filter.ParseCursor(c.QueryParam("first"))
	return l, web.InAddress(err)
}

// paramIDs reads the list of jobs that a page follows.
func paramIDs(c echo.Context) (ids []string, err error) {
	given := c.QueryParam("ids")
	if given == "" {
		return nil, nil
	}
	if n := strings.Count(given, ",") + 1; n > live.MaxIDs {
		return nil, web.FailIn(web.BadParameter, "ids", fmt.Sprintf("%d ids, at most %d are accepted", n, live.MaxIDs))
	}
	for text := range strings.SplitSeq(given, ",") {
		id, err := job.ParseID(text)
		if err != nil {
			return nil, web.FailIn(web.BadParameter, "ids", err.Error())
		}
		ids = append(ids, id)
	}
	return ids, nil
}
