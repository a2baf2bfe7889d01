package cli

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"redrive/internal/cli/console"
	"redrive/internal/store/location"
	"redrive/internal/store/transfer"
)

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
	draw, begun := c.Steps(), false
	began := time.Now()
	report, err := transfer.Run(ctx, from, to, func(step transfer.Step, done, all int64) {
		begun = true
		draw(string(step), done, all)
	})
	c.Clear()

	if ctx.Err() != nil && begun {
		return fmt.Errorf("stopped; %s is not finished: run the same command again, and it goes on where it was", to)
	}

	if err != nil {
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
