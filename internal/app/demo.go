package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/store"
	"redrive/internal/store/location"
	"redrive/web/templates"
)

// ErrStartOver ends an app whose demo is reset.
var ErrStartOver = errors.New("the demo starts over")

// World is the demo's world as the server sees it.
type World struct {
	*demo.World
	hide  func(string) string // removes secrets from a text
	reset chan struct{}       // one slot: a user asked for a reset
}

// NewWorld makes the world of a seed. The same seed makes the same world.
func NewWorld(seed uint64, settings *config.Config) World {
	return World{demo.New(seed, settings), settings.Redactor().Text, make(chan struct{}, 1)}
}

// Faults lists the switches for the banner.
func (w World) Faults() []templates.Fault {
	var all []templates.Fault
	for _, f := range w.World.Faults() {
		all = append(all, templates.Fault(f))
	}

	return all
}

// Reset ends this world; the next one begins with a new database.
func (w World) Reset(context.Context) error {
	select {
	case w.reset <- struct{}{}:
	default: // it is under way
	}

	return nil
}

// WriteHistory writes what happened in the day before the start to a new database, and tells
// how many of all jobs are done.
func (w World) WriteHistory(ctx context.Context, db string, jobs int, told func(done, all int)) error {
	s, err := store.Open(ctx, store.Options{Database: location.Of(db).Database(true)})
	if err != nil {
		return err
	}

	desk := demo.Desk{Operations: s.Operations, Groups: s.Groups, Hide: w.hide}
	err = w.History(ctx, s, desk, demo.Day{End: time.Now(), Jobs: jobs}, told)

	return errors.Join(err, s.Close())
}

// Play lets the world send its jobs to the running app until the app stops, and the outlet
// work beside it, and stops the app when a user asks for a reset.
func (a *App) Play(w World, outlet *demo.Outlet) {
	a.inBackground("outlet of the demo", func(ctx context.Context) {
		if err := outlet.Run(ctx); err != nil {
			a.fail(fmt.Errorf("run the demo's outlet: %w", err))
		}
	})

	a.inBackground("demo", func(ctx context.Context) {
		if err := w.Feed(ctx, a.store); err != nil {
			a.fail(fmt.Errorf("feed the demo: %w", err))
		}
	})

	// A reset ends this app; the command then starts another one with a new world.
	a.inBackground("reset of the demo", func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-w.reset:
			a.fail(ErrStartOver)
		}
	})
}
