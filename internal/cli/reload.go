package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"redrive/internal/apitype/admin"
	"redrive/internal/client"
)

// reloadCommand is dashboard reload: it asks the dashboard that has the database open.
type reloadCommand struct{ accountFlags }

// Run prints what changed.
func (r *reloadCommand) Run(c Console) error {
	var done admin.Reloaded

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
