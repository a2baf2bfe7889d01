package api

import (
	"context"
	"encoding/hex"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/audit"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

// exportAudit is the log as far as the address selects it, newest first.
func (a *API) exportAudit(c echo.Context) (export, error) {
	f, after, err := web.AuditQuery(c)
	if err != nil {
		return export{}, problem.InAddress(err)
	}

	next := func(ctx context.Context) (exportPage, error) {
		found, slow, err := web.InTime(a.View.Audit(ctx, f, after, entriesAtOnce))
		after = found.Next
		return pageOf(found.Entries, asRow(entryOf), after != 0, slow), err
	}

	return export{"audit", f.String(), apitype.Columns(apitype.AuditEntry{}), next}, nil
}

// entryOf is an entry of the audit log. The hash lets a reader of the export check
// that no entry was changed or removed.
func entryOf(e audit.Entry) apitype.AuditEntry {
	return apitype.AuditEntry{
		Seq:     e.Seq,
		At:      apitype.At(e.At),
		Actor:   e.Actor.Name,
		Address: e.Actor.Address,
		Action:  e.Action,
		Subject: e.Subject,
		Filter:  e.Filter,
		Count:   e.Count,
		Before:  e.Before,
		After:   e.After,
		Hash:    hex.EncodeToString(e.Hash),
	}
}

// audit is GET /audit.
func (a *API) audit(c echo.Context) (apitype.AuditLog, error) {
	f, after, err := web.AuditQuery(c)
	if err != nil {
		return apitype.AuditLog{}, problem.InAddress(err)
	}

	limit, err := pageSize(c)
	if err != nil {
		return apitype.AuditLog{}, err
	}

	found, slow, err := web.InTime(a.View.Audit(c.Request().Context(), f, after, limit))

	return apitype.AuditLog{
		Entries:      mapped(found.Entries, entryOf),
		NumberedPage: apitype.NumberedPage{Next: found.Next, Incomplete: slow},
	}, err
}
