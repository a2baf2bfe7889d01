package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"redrive/internal/config"
	"redrive/internal/invalid"
)

// The configuration is a snapshot that never changes. Every part of the app has the
// first one, which passes each question on to the newest: to reload is to read the
// file, to build what is built of it, and to swap both. What runs keeps what it has, but
// for a source, which starts again when what the file says about it has changed.

// readAgain reads the configuration again. A file that is wrong anywhere changes
// nothing.
func (a *App) readAgain(ctx context.Context) (changed, restart []string, err error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()

	if a.Reload == "" || a.set.Load() == nil {
		return nil, nil, invalid.Errorf("config", "the demo has no configuration file")
	}

	if err := checkReloadable(a.Reload); err != nil {
		return nil, nil, err
	}

	settings, err := config.Load(a.Reload)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, missingFile(a.Reload)
	}

	if err == nil {
		err = CheckHandlers(settings)
	}

	if err != nil {
		return nil, nil, refusedFile(err)
	}

	// Handlers are only built here. The webhooks, which take effect at once, are the last
	// that can be wrong.
	set, err := a.set.Load().With(settings.Handlers, a.Config.Redactor().TextFrom)
	if err == nil {
		err = a.forwarder.Replace(webhooks(settings))
	}

	if err != nil {
		return nil, nil, refusedFile(settings.Locate(err))
	}

	// The file is good: each part takes its share of it.
	changed, restart = a.Config.Replace(settings)
	a.set.Store(set)
	a.sources.Replace(attached(a.Config))

	if slices.Contains(changed, "sources") {
		a.hub.Redraw() // no job moves because of that, and open pages say what a source allows
	}

	a.Log.Info("The configuration was reloaded.", "config", a.Reload, "changed", changed, "needs_restart", restart)
	a.engine.Reloaded(ctx)

	return changed, restart, nil
}

// checkReloadable refuses what a reload would wait for or find empty: a pipe has been read at
// the start, and an editor may be about to write a file that is empty.
func checkReloadable(path string) error {
	what, err := os.Stat(path)
	switch {
	case err != nil:
		return nil // opening it returns the error
	case !what.Mode().IsRegular():
		return invalid.Errorf("config", "%s is not a regular file, so it cannot be read again; restart the dashboard instead", path)
	case what.Size() == 0:
		return invalid.Errorf("config", "%s is empty; to run without settings, write {} to it", path)
	}

	return nil
}

// missingFile is the error of a file that is not there. It tells where the dashboard
// looks for it: that may have another working directory than the person who asks.
func missingFile(path string) error {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return invalid.Errorf("config", "%s: no such file; create it and reload again", path)
}

// refusedFile is the error of a file that is wrong, with a line for each thing. A variable that
// the dashboard lacks may be set where the person runs the command.
func refusedFile(err error) error {
	text := err.Error()
	if config.NamesUnsetVariable(err) {
		text += "\nThis dashboard has the environment of its start: restart it with the variable, or name a file, as in url_file."
	}

	return invalid.Errorf("config", "%s", text)
}

// readAfterStandby reloads before the first job runs, in an app that stood by: its configuration is
// that of its start, perhaps weeks ago. Without a file that can be read again, it stays as it was.
func (a *App) readAfterStandby(ctx context.Context) error {
	if !a.stoodBy || a.Reload == "" {
		return nil
	}

	what, err := os.Stat(a.Reload)
	if err == nil && what.Mode().IsRegular() {
		a.reload(ctx)
	}

	return nil
}

// ReloadOn reloads on each signal of the channel, until the app is stopped.
func (a *App) ReloadOn(hangups <-chan os.Signal) {
	a.inBackground("reload", func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				a.reload(ctx)
			}
		}
	})
}

// reload reads the configuration again, where no caller hears of an error.
func (a *App) reload(ctx context.Context) {
	_, _, err := a.readAgain(ctx)
	if err != nil {
		a.Log.Error("The configuration was not reloaded. The dashboard keeps the previous one.",
			"error", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}
