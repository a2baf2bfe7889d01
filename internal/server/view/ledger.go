package view

import (
	"context"

	"redrive/internal/audit"
	"redrive/internal/source"
)

// OpenActs counts the acts of each source that have not ended.
func (v *View) OpenActs(ctx context.Context) (map[string]int64, error) {
	return v.store.Sources.Open(ctx)
}

// SourceActs are rows of a source's ledger: first the acts whose result is unknown, then
// the newest.
func (v *View) SourceActs(ctx context.Context, name string, most int) ([]source.Act, error) {
	acts, err := v.store.Sources.Acts(ctx, name, most)
	return each(acts, func(a source.Act) source.Act { a.Why, a.Raw = v.Text(a.Why), nil; return a }), err
}

// Audit is a page of the audit log, the newest first. Who sees only their own of some
// entries sees no addresses.
func (v *View) Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error) {
	list, err := v.store.Accounts.Audit(ctx, f, before, limit)
	each(list.Entries, v.entry)

	if f.Own != "" {
		each(list.Entries, audit.Entry.WithoutAddresses)
	}

	return list, err
}

// Record writes an entry about what changes nothing in the database.
func (v *View) Record(ctx context.Context, e audit.Entry) error {
	return v.store.Accounts.Record(ctx, e)
}
