// Package apptest has what tests start an app with.
package apptest

import (
	"log/slog"
	"testing"

	"redrive/internal/app"
	"redrive/internal/config"
	"redrive/internal/store/databasetest"
)

// Parts are those of an app that can run beside others: a new database, a free port, the
// built-in configuration, and no log.
func Parts(t *testing.T) app.Parts {
	t.Helper()
	return app.Parts{
		Listen: "127.0.0.1:0", DB: databasetest.New(t), Config: config.Default(), Log: slog.New(slog.DiscardHandler),
	}
}
