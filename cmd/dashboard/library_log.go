package main

import (
	"context"
	stdlog "log"
	"log/slog"
	"os"
	"strings"
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

// redirectLibraries keeps the secrets of services out of the log that libraries share.
func (a *app) redirectLibraries(context.Context) error {
	flags := stdlog.Flags()
	stdlog.SetFlags(0) // the log has the time
	stdlog.SetOutput(libraryLog{a.log, a.config.Redactor().Text})
	a.onClose("log of libraries", func() {
		stdlog.SetFlags(flags)
		stdlog.SetOutput(os.Stderr)
	})
	return nil
}
