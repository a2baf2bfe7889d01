package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"redrive/internal/client"
	"redrive/internal/config"
	"redrive/internal/invalid"
)

// The configuration is a snapshot that never changes. Every part of the app has the
// first one, which passes each question on to the newest: to reload is to read the
// file, to build what is built of it, and to swap both. What runs keeps what it has, but
// for a source, which starts again when what the file says about it has changed.

// readAgain reads the configuration again. A file that is wrong anywhere changes
// nothing.
func (a *app) readAgain(ctx context.Context) (changed, restart []string, err error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if a.reload == "" || a.set.Load() == nil {
		return nil, nil, invalid.Errorf("config", "the demo has no configuration file")
	}
	if err := readable(a.reload); err != nil {
		return nil, nil, err
	}
	settings, err := loadConfig(a.reload)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, missingFile(a.reload)
	}
	if err == nil {
		err = checkHandlers(settings)
	}
	if err != nil {
		return nil, nil, refusedFile(err)
	}
	set, err := a.set.Load().With(settings.Handlers, a.config.Redactor().TextFrom)
	if err == nil {
		err = a.forwarder.Replace(webhooks(settings))
	}
	if err != nil {
		return nil, nil, refusedFile(settings.Locate(err))
	}
	changed, restart = a.config.Replace(settings)
	a.set.Store(set)
	a.sources.Replace(attached(a.config))
	if slices.Contains(changed, "sources") {
		a.hub.Redraw() // no job moves because of that, and open pages say what a source allows
	}
	a.log.Info("The configuration was reloaded.", "config", a.reload, "changed", changed, "needs_restart", restart)
	a.engine.Reloaded(ctx)
	return changed, restart, nil
}

// readable refuses what a reload would wait for or find empty: a pipe has been read at
// the start, and an editor may be about to write a file that is empty.
func readable(path string) error {
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
	if config.LacksVariable(err) {
		text += "\nThis dashboard has the environment of its start: restart it with the variable, or name a file, as in url_file."
	}
	return invalid.Errorf("config", "%s", text)
}

// reloadOnHangup reloads on SIGHUP, until the app is stopped.
func (a *app) reloadOnHangup() {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	a.inBackground("reload", func(ctx context.Context) {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				if _, _, err := a.readAgain(ctx); err != nil {
					a.log.Error("The configuration was not reloaded. The dashboard keeps the previous one.",
						"error", strings.ReplaceAll(err.Error(), "\n", "; "))
				}
			}
		}
	})
}

// reloadCommand is dashboard reload: it asks the dashboard that has the database open.
type reloadCommand struct{ accountFlags }

// Run prints what changed.
func (r *reloadCommand) Run(c console) error {
	var done struct{ Changed, Restart []string }
	dashboard, err := r.connect()
	if err == nil {
		err = dashboard.Call(context.Background(), http.MethodPost, "reload", nil, &done)
	}
	var answer *client.Error
	if errors.As(err, &answer) && answer.Field == "config" {
		return wrongFile{answer}
	}
	if err != nil {
		return err
	}
	switch {
	case len(done.Changed) > 0:
		fmt.Fprintf(c.stdout, "Reloaded: %s.\n", strings.Join(done.Changed, ", "))
	case len(done.Restart) == 0:
		fmt.Fprintln(c.stdout, "The configuration has not changed.")
	}
	if len(done.Restart) > 0 {
		fmt.Fprintf(c.stdout, "These take effect after a restart: %s.\n", strings.Join(done.Restart, ", "))
	}
	return nil
}

// wrongFile is the answer about a configuration in which something is wrong; its
// message has a line for each thing.
type wrongFile struct{ answer *client.Error }

func (w wrongFile) Error() string { return w.answer.Message }
func (w wrongFile) Unwrap() error { return w.answer }
