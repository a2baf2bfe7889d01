package sqlite

import (
	"context"
	"embed"
	"log/slog"
	"time"

	"redrive/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the newest version that this program knows. Each migration
// ends by writing its number to user_version, which can be read without knowing
// any table.
const schemaVersion = 29

// patience is after how long a step that is under way is logged again.
const patience = 5 * time.Second

// migrate brings the schema up to date from a version, which is 0 for a new database: forward
// only, one transaction for each step together with its record. The steps of a large database
// can take a minute, so their progress is logged.
func (e *engine) migrate(ctx context.Context, from int64) error {
	steps, err := migrator(e.writes)
	if err != nil {
		return err
	}

	// Without rows, no step takes long enough to be logged.
	if from == 0 {
		_, err = steps.Up(ctx)
		return db.Wrap(err, "make the schema of version %d", schemaVersion)
	}

	log := e.health.Log().With("path", e.path)
	log.Info("Bringing the database to the schema of this version. Jobs run again when this is done.", "from", from, "to", schemaVersion)

	begun := time.Now()

	// The steps are taken one by one, so that the log can name the one under way.
	for version := from + 1; version <= schemaVersion; version++ {
		log := log.With("step", version, "of", schemaVersion)
		stop := sayWhileItLasts(log)
		_, err = steps.UpTo(ctx, version)

		stop()

		if err != nil {
			return db.Wrap(err, "bring the schema from version %d to %d", version-1, version)
		}
	}

	log.Info("The database has the schema of this version.", "version", schemaVersion, "took", time.Since(begun).Round(time.Millisecond))

	return nil
}

// sayWhileItLasts logs that a step is still under way, until it is stopped.
func sayWhileItLasts(log *slog.Logger) (stop func()) {
	done, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)

		begun, tick := time.Now(), time.NewTicker(patience)
		defer tick.Stop()

		for {
			select {
			case <-done:
				return
			case <-tick.C:
				log.Info("The step is still under way.", "for", time.Since(begun).Round(time.Second))
			}
		}
	}()

	// Wait for the goroutine: it logs nothing once the step has been stopped.
	return func() {
		close(done)
		<-said
	}
}
