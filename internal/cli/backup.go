package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
	"redrive/internal/usage"
)

// backupCommand is dashboard backup: it copies a database, also while a dashboard has
// it open.
type backupCommand struct {
	File  string `arg:"" help:"The file to write."`
	DB    string `name:"db" help:"Database file (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"FILE"`
	Force bool   `help:"Replace the file if it exists."`
}

// Run writes the copy.
func (b *backupCommand) Run(c console.Console) error {
	ctx, stop := c.Until(os.Interrupt, syscall.SIGTERM)
	defer stop()

	file, err := reach.File(b.DB, "Back it up with the tools of PostgreSQL: pg_basebackup, or pg_dump from a replica (docs/postgres.md)")
	if err != nil {
		return err
	}

	began := time.Now()
	err = file.Backup(ctx, b.File, b.Force, c.Percent("Copying"))
	c.Clear()

	if errors.Is(err, fs.ErrExist) {
		return usage.Errorf("%s exists; name a new file, or add --force to replace it", b.File)
	}

	// The database or the folder of the copy does not exist, or the name of the copy belongs to
	// something that is not a file.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sqlite.ErrNoFile) {
		return usage.Errorf("nothing was copied: %w", err)
	}

	if err != nil {
		return fmt.Errorf("%s was not copied: %w", b.DB, err)
	}

	info, err := os.Stat(b.File)
	if err != nil {
		return err
	}

	fmt.Fprintf(c.Stdout, "%s is a complete, verified copy of %s: %d bytes, in %v.\n",
		b.File, b.DB, info.Size(), time.Since(began).Round(time.Millisecond))

	return nil
}

// restoreCommand is dashboard restore: it puts a copy in the place of a database.
type restoreCommand struct {
	File  string `arg:"" help:"The backup."`
	DB    string `name:"db" help:"Database file (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"FILE"`
	Force bool   `help:"Replace an existing database. The old one is kept under another name."`
}

// Run restores the copy.
func (r *restoreCommand) Run(c console.Console) error {
	ctx, stop := c.Until(os.Interrupt, syscall.SIGTERM)
	defer stop()

	file, err := reach.File(r.DB, "Restore it with the tools of PostgreSQL (docs/postgres.md)")
	if err != nil {
		return err
	}

	kept, err := file.Restore(ctx, r.File, r.Force, c.Percent("Copying"))
	c.Clear()

	switch {
	case errors.Is(err, fs.ErrExist):
		return usage.Errorf("%s exists; add --force to replace it (the old database is kept under another name)", r.DB)
	case errors.Is(err, fs.ErrNotExist):
		return usage.Errorf("nothing was restored: %w", err)
	case errors.As(err, new(*health.LockedError)):
		return usage.Of(err)
	case err != nil:
		return fmt.Errorf("%s was not restored: %w", r.File, err)
	}

	if kept != "" {
		fmt.Fprintf(c.Stdout, "The old database is now %s.\n", kept)
	}

	fmt.Fprintf(c.Stdout, "Restored %s from %s. The search index will be rebuilt after the next start.\n", r.DB, r.File)

	return nil
}
