package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/server/web"
)

// refuse answers an error. It is echo's HTTPErrorHandler.
func (s *Server) refuse(err error, c echo.Context) {
	if errors.Is(err, context.Canceled) { // the client has left: nobody reads an answer, and nothing is wrong
		s.Log.Debug("the client left", "request", web.RequestID(c), "path", c.Path(), "error", err)
		return
	}
	f := *web.Describe(err)
	status := f.Kind.Status
	if status >= http.StatusInternalServerError && f.Kind != web.Overloaded {
		s.Log.Error("request failed", "request", web.RequestID(c), "path", c.Path(), "status", status, "error", err)
	}
	if c.Response().Committed {
		return // half an answer is out; the connection ends
	}
	if f.Kind == web.UnknownCaller {
		if forBrowsers(c) {
			s.sendToLogin(c)
			return
		}
		c.Response().Header().Set("WWW-Authenticate", "Bearer")
	}
	if status == http.StatusServiceUnavailable {
		c.Response().Header().Set("Retry-After", "2")
	}
	switch {
	case f.Kind == web.Unexpected:
		f.Text += " under request " + web.RequestID(c)
	case errors.Is(err, context.DeadlineExceeded) && web.IsRead(c.Request()):
		f.Text += "; try again"
	case errors.Is(err, context.DeadlineExceeded):
		f.Text += "; the change may still be made, so look before you try again"
	}
	if web.WantsJSON(c.Request()) {
		err = c.JSONBlob(status, f.Encode())
	} else {
		err = s.pages.Problem(c, f)
	}
	if err != nil {
		s.Log.Warn("an error could not be shown", "request", web.RequestID(c), "error", err)
	}
	if !c.Response().Committed {
		c.Response().WriteHeader(status)
	}
}
