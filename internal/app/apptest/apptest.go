package main

import (
	"log/slog"
	"testing"

	"redrive/internal/config"
	"redrive/internal/store/sqlite/sqlitetest"
)

// testParts are those of an app in a test, which can run beside others: a new database, a
// free port, the built-in configuration, and no log.
func testParts(t *testing.T) parts {
	t.Helper()
	return parts{
		listen: "127.0.0.1:0", db: sqlitetest.New(t), config: config.Default(), log: slog.New(slog.DiscardHandler),
	}
}
