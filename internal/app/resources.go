package app

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"redrive/internal/resource"
	"redrive/internal/shortage"
	"redrive/internal/wire"
)

// divideDescriptors finds out how many files and connections this process may have
// open, and who gets how many of them.
func (a *App) divideDescriptors(context.Context) error {
	limit, err := resource.Descriptors()
	if err != nil {
		return err
	}

	a.shares = resource.Divide(limit, a.Config.Limits().Connections)
	a.shares.Log(a.Log)

	if err := resource.Prepare(); err != nil {
		a.Log.Warn("This machine's trusted certificates could not be read. Services cannot be called over https.", "error", err)
	}

	return nil
}

// dropStartup collects what only the start needed. The library of the migrations
// keeps buffers of 4 MB each until two collections have passed, and as long as they
// count as in use, the heap grows to three times their size: an idle process had
// 42 MB instead of 39.
func (a *App) dropStartup(context.Context) error {
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	return nil
}

// probe gives free what is kept for later only, and looks whether there is some of
// a resource again.
func (a *App) probe(of shortage.Resource) error {
	for _, closeIdle := range a.spares {
		closeIdle()
	}
	return resource.Probe(of)
}

// ready returns why the process takes no jobs, or nil when it does.
func (a *App) ready() error {
	if !a.running.Load() {
		return errors.New("the dashboard is starting or stopping")
	}

	if held, ok := a.engine.OpenBreaker(); ok {
		return fmt.Errorf("no jobs have been claimed since %s: %s", wire.FormatTime(held.Since), held.Reason)
	}

	return nil
}
