package app

import (
	"errors"
	"os/exec"

	"redrive/internal/config"
	"redrive/internal/handler"
	"redrive/internal/invalid"
	"redrive/internal/usage"
)

// CheckHandlers refuses handlers that cannot be built, and programs that are missing.
func CheckHandlers(settings *config.Config) error {
	set, err := handler.New(settings.Handlers, settings.Redactor().TextFrom)
	if err != nil {
		return usage.Of(settings.Locate(err))
	}

	set.Close()

	var missing []error
	for pattern, h := range settings.Handlers {
		if h.Exec == nil {
			continue
		}

		if _, err := exec.LookPath(h.Exec.Command[0]); err != nil {
			missing = append(missing, &invalid.Error{Field: "handlers." + pattern + ".exec.command", Problem: "cannot be run: " + err.Error()})
		}
	}

	if len(missing) > 0 {
		return usage.Of(settings.Locate(errors.Join(missing...)))
	}

	return nil
}
