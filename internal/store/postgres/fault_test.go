package postgres_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"redrive/internal/fault"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// What the server says has a kind by which the product decides, and words for people.
func TestFault_HasTheKindOfTheServersCode(t *testing.T) {
	for code, want := range map[string]struct {
		kind  error
		again bool
	}{
		"53100": {fault.ErrStorageFull, false},
		"53200": {fault.ErrStarved, true},
		"53300": {fault.ErrStarved, true},
		"53400": {fault.ErrStarved, true},
		"25006": {fault.ErrReadOnly, false},
		"40001": {fault.ErrBusy, true},
		"40P01": {fault.ErrBusy, true},
		"55P03": {fault.ErrBusy, true},
		"25P03": {fault.ErrBusy, true},
		"25P04": {fault.ErrBusy, true},
		"57014": {fault.ErrBusy, false},
		"42P05": {fault.ErrBusy, true},
		"26000": {fault.ErrBusy, true},
		"3D000": {fault.ErrRefused, true},
		"28P01": {fault.ErrRefused, true},
		"28000": {fault.ErrRefused, true},
		"58030": {fault.ErrUnreachable, true},
		"57P01": {fault.ErrUnreachable, true},
		"57P03": {fault.ErrUnreachable, true},
		"08006": {fault.ErrUnreachable, true},
		"XX001": {fault.ErrCorrupt, false},
		"XX002": {fault.ErrCorrupt, false},
		"RD001": {fault.ErrBroken, false},
		"RD002": {fault.ErrTakenOver, false},
		"22012": {nil, false},
		"23505": {nil, false},
	} {
		t.Run(code, func(t *testing.T) {
			engine, err := postgres.Server{DSN: postgrestest.New(t)}.Open(t.Context(), health.New(slog.New(slog.DiscardHandler)))
			check(t, err)
			conn, err := engine.Writer(t.Context())
			check(t, err)

			err = engine.Fault(db.Transact(t.Context(), conn, func(tx *db.Tx) error {
				return tx.Run(`DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '` + code + `'; END $$`)
			}))
			if err == nil || want.kind != nil && !errors.Is(err, want.kind) || engine.Again(err) != want.again {
				t.Errorf("%v, to be run again: %t", err, engine.Again(err))
			}

			if found, ok := errors.AsType[*health.Fault](err); ok != (want.kind != nil) || ok && found.Kind != want.kind {
				t.Errorf("the kind is that of %#v", found)
			}

			check(t, conn.Close())
			check(t, engine.Close())
		})
	}
}

// A server that refuses to work is told from one that does not answer, in its own words.
func TestFault_SaysWhyTheServerRefuses(t *testing.T) {
	dsn := postgrestest.New(t)

	_, err := openAt(t, strings.Replace(dsn, "postgres@", "nobody-of-this-name@", 1))
	if !errors.Is(err, fault.ErrUnreachable) || !strings.Contains(err.Error(), `role "nobody-of-this-name" does not exist`) ||
		strings.Contains(err.Error(), "does not answer") {
		t.Errorf("it is opened with %v", err)
	}
}
