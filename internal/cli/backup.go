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
	"redrive/internal/store/location"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/transfer"
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

// migrateCommand is dashboard migrate: it copies a database into another one. No dashboard may
// have either of them open.
type migrateCommand struct {
	From string `help:"Database to copy: a file, or one on PostgreSQL. It is left as it is." required:"" placeholder:"DATABASE"`
	To   string `help:"Database that becomes a copy of it: a new file, or an empty database on PostgreSQL." required:"" placeholder:"DATABASE"`
}

// Run copies the database, or goes on where an earlier run was cut short.
func (m *migrateCommand) Run(c console.Console) error {
	ctx, stop := c.Until(os.Interrupt, syscall.SIGTERM)
	defer stop()

	from, to := location.Of(m.From), location.Of(m.To)
	examined, draw := c.Waiting("Examining "+from.String()), c.Steps()
	began, begun := time.Now(), false
	report, err := transfer.Run(ctx, from, to, func(step transfer.Step, done, all int64) {
		begun = true

		examined()
		draw(string(step), done, all)
	})

	examined()
	c.Clear()

	switch {
	case err != nil && ctx.Err() != nil && begun:
		return fmt.Errorf("stopped; %s is not finished: run the same command again, and it goes on where it was", to)
	case err != nil && ctx.Err() != nil:
		return errors.New("stopped; nothing was copied")
	case err != nil:
		return err
	}

	m.say(c, report, time.Since(began))

	return nil
}

// say says what was done, and what is to be done now.
func (m *migrateCommand) say(c console.Console, r transfer.Report, took time.Duration) {
	from, to := location.Of(m.From), location.Of(m.To)

	fmt.Fprintf(c.Stdout, "%s is a complete, verified copy of %s: %s of %s, in %v.\n", to, from,
		console.Counted(int(r.Rows), "row"), console.Counted(r.Tables, "table"), took.Round(time.Millisecond))

	if r.Kept > 0 {
		fmt.Fprintf(c.Stdout, "An earlier run had copied %s of them.\n", console.Counted(int(r.Kept), "row"))
	}

	if r.Mended > 0 {
		fmt.Fprintf(c.Stdout, "Characters that PostgreSQL cannot keep were replaced by \uFFFD in %s.\n", console.Counted(int(r.Mended), "text"))
	}

	fmt.Fprintf(c.Stdout, "Not copied: sessions (everyone logs in again) and the search index (it is rebuilt after the next start).\n"+
		"Start the dashboard with it: dashboard serve --db '%s'\n"+
		"Keep %s, which is as it was, but do not start a dashboard with it any more: its jobs would run twice.\n", to, from)
}
