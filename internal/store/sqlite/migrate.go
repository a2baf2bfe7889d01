package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the newest version that this program knows. Each migration
// ends by writing its number to user_version, which can be read without knowing
// any table.
const schemaVersion = 7

// migrate brings the schema up to date: forward only, one transaction for each
// step together with its record.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	steps, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	if _, err := steps.Up(ctx); err != nil {
		return fmt.Errorf("bring the schema to version %d: %w", schemaVersion, err)
	}
	return nil
}
