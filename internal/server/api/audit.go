package api

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"redrive/internal/audit"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// entryShape is an entry of the audit log as the API and the exports show it.
type entryShape struct {
	Seq     int64  `json:"seq"`
	At      string `json:"at"`
	Actor   string `json:"actor"`
	Address string `json:"address,omitempty"`
	Action  string `json:"action"`
	Subject string `json:"subject,omitempty"`
	Filter  string `json:"filter,omitempty"`
	Count   int64  `json:"count"`
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Hash    string `json:"hash,omitempty"`
}

func shapeEntry(e audit.Entry) entryShape {
	return entryShape{e.Seq, wire.FormatTime(e.At), e.Actor.Name, e.Actor.Address, e.Action, e.Subject, e.Filter, e.Count,
		e.Before, e.After, fmt.Sprintf("%x", e.Hash)}
}

// audit is GET /audit.
func (a *API) audit(c echo.Context) (web.Object, error) {
	f, after, err := web.AuditQuery(c)
	if err != nil {
		return nil, web.InAddress(err)
	}
	limit, err := pageSize(c)
	if err != nil {
		return nil, err
	}
	found, err := a.View.Audit(c.Request().Context(), f, after, limit)
	slow, err := web.Tolerate(err)
	return page("entries", web.List(found.Entries, shapeEntry), found.Next, slow), err
}
