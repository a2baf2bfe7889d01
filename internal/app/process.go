package app

import (
	stdlog "log"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"redrive/internal/config"
)

// libraryLog takes what libraries write that are given no log. Their lines can quote
// what a service sent: net/http does so with bytes that come after an answer.
type libraryLog struct {
	log  *slog.Logger
	hide func(string) string
}

func (l libraryLog) Write(line []byte) (int, error) {
	l.log.Debug("A library logged a message.", "text", l.hide(strings.TrimSpace(string(line))))
	return len(line), nil
}

// OccupyProcess sets what an app cannot have for itself, because a process has it once: how
// much memory it takes, unless the environment has said so already, and the log that
// libraries share, in which the secrets of services are hidden. A process that is an app does
// this before the start; apps that run beside each other leave both alone.
func OccupyProcess(c *config.Config, log *slog.Logger) (release func()) {
	// The garbage collector works harder once the process has grown.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(c.Limits().Memory))
	}

	flags := stdlog.Flags()

	stdlog.SetFlags(0) // the log has the time
	stdlog.SetOutput(libraryLog{log, c.Redactor().Text})

	return func() {
		stdlog.SetFlags(flags)
		stdlog.SetOutput(os.Stderr)
	}
}
