package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"redrive/internal/apitype/admin"
	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/client"
)

// healthCommand is dashboard health: the health check of a container, or of a script
// that waits for a start.
type healthCommand struct{ reach.Dashboard }

// Run fails unless the dashboard takes and runs jobs. In the environment of a process whose
// database is on a server, it asks that process, which is healthy also while it stands by for
// another one. A dashboard that is not there is a failure like any other, and no wrong command
// line: container runtimes reserve the status 2.
func (h *healthCommand) Run(c console.Console) error {
	here, connect := h.IsHere(), h.Connect
	if here {
		connect = func() (*client.Client, error) { return reach.Here(pathHere()) }
	}

	dashboard, err := connect()
	if err == nil {
		err = dashboard.Ready(context.Background())
	}

	// The process here has nothing to mend while it waits for its turn.
	waits, ok := errors.AsType[*client.NotReady](err)
	if here && ok && waits.StandsBy() {
		fmt.Fprintln(c.Stdout, waits.Why)
		return nil
	}

	if err != nil {
		return errors.New(err.Error())
	}

	fmt.Fprintln(c.Stdout, "ready")

	return nil
}

// pathHere is the base path of the process of this environment, from where that process reads it at its
// start. It is empty when the configuration can no longer be read.
func pathHere() string {
	path, set := os.LookupEnv("REDRIVE_BASE_PATH")
	if set {
		return strings.TrimSuffix(path, "/")
	}

	settings, err := loadConfig(os.Getenv("REDRIVE_CONFIG"))
	if err != nil {
		return ""
	}

	return settings.BasePath()
}

// reloadCommand is dashboard reload: it asks the dashboard that has the database open.
type reloadCommand struct{ reach.Accounts }

// Run prints what changed.
func (r *reloadCommand) Run(c console.Console) error {
	var done admin.Reloaded

	dashboard, err := r.Connect()
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

	// Some sections take effect at once, others after a restart; a change can have both.
	switch {
	case len(done.Changed) > 0:
		fmt.Fprintf(c.Stdout, "Reloaded: %s.\n", strings.Join(done.Changed, ", "))
	case len(done.Restart) == 0:
		fmt.Fprintln(c.Stdout, "The configuration has not changed.")
	}

	if len(done.Restart) > 0 {
		fmt.Fprintf(c.Stdout, "These take effect after a restart: %s.\n", strings.Join(done.Restart, ", "))
	}

	return nil
}

// wrongFile is the answer about a configuration in which something is wrong; its
// message has a line for each thing.
type wrongFile struct{ answer *client.Error }

func (w wrongFile) Error() string { return w.answer.Message }
func (w wrongFile) Unwrap() error { return w.answer }
