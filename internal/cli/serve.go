package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"redrive/internal/app"
	"redrive/internal/cli/console"
	"redrive/internal/config"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/usage"
)

// serveCommand is the command that runs everything.
type serveCommand struct {
	Listen    string `help:"Address to listen on (${default})." default:"127.0.0.1:8080" env:"REDRIVE_LISTEN" placeholder:"HOST:PORT"`
	DB        string `name:"db" help:"${database} (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"DATABASE"`
	Config    string `help:"Configuration file (redrive.yaml, where it exists)." env:"REDRIVE_CONFIG" placeholder:"FILE"`
	LogLevel  string `help:"${level} (${default})." default:"info" enum:"${levels}" env:"REDRIVE_LOG_LEVEL" placeholder:"LEVEL"`
	LogFormat string `help:"text or json (${default})." default:"text" enum:"text,json" env:"REDRIVE_LOG_FORMAT" placeholder:"FORMAT"`

	Relaxed bool `help:"Do not wait for the disk at each commit: faster, but a power cut may lose the last moments." env:"REDRIVE_RELAXED"`

	BasePath       *string `help:"${base_path}" env:"REDRIVE_BASE_PATH" placeholder:"PATH"`
	InsecureNoAuth bool    `help:"Accept connections from other machines even if no login is required."`
}

// Run serves until a signal or a failure. Who reads the log as JSON finds nothing in
// another format: the failure is the last line of the log then.
func (s *serveCommand) Run(c console.Console) error {
	log, err := c.Log(s.LogLevel, s.LogFormat)
	if err != nil {
		return err
	}

	err = s.run(c, log)
	if err != nil && s.LogFormat == "json" {
		log.Error("Redrive failed.", "error", err)
		return loggedError{err}
	}

	return err
}

// loggedError is an error that the log has told already.
type loggedError struct{ error }

func (e loggedError) Unwrap() error { return e.error }

// run is Run with a log. What is wrong with the flags and the configuration is said
// before anything is opened.
func (s *serveCommand) run(c console.Console, log *slog.Logger) error {
	if err := app.CheckListen(s.Listen, true); err != nil {
		return err
	}

	settings, err := loadConfig(s.Config)
	if err != nil {
		return err
	}

	base := settings.BasePath()
	if s.BasePath != nil {
		base = strings.TrimSuffix(*s.BasePath, "/")
	}

	if !config.IsBasePath(base) {
		return usage.Errorf("--base-path %q is not a path, for example /redrive", base)
	}

	if s.Relaxed {
		log.Warn("Relaxed: a power cut may lose the last moments.")
	}

	ctx, signals, release := c.Interrupts()
	defer release()

	// One that comes while this process stands by counts when that takes over.
	hangups, ignore := c.Signals(syscall.SIGHUP)
	defer ignore()

	defer app.OccupyProcess(settings, log)()

	a, err := app.Start(ctx, app.Parts{
		Listen: s.Listen, DB: s.DB, Relaxed: s.Relaxed, Open: s.InsecureNoAuth, BasePath: base, Config: settings, Log: log,
		Reload: cmp.Or(settings.File(), usualConfig), Standby: func(why error) { s.standby(c, log, why) },
	})
	if err != nil {
		return app.UnlessInterrupted(ctx, log, err)
	}

	where := location.Of(s.DB).String()
	log.Info("Redrive is ready.", "version", c.Version, "url", a.URL(), "database", where, "config", cmp.Or(settings.File(), "none"),
		"handlers", append([]string{}, slices.Sorted(maps.Keys(settings.Handlers))...), "queues", append([]string{}, settings.Queues()...))

	if s.LogFormat != "json" {
		state := ""
		if a.Store().Made() {
			state = ", which is new"
		}

		fmt.Fprintf(c.Stdout, "Redrive is at %s, its database is %s%s.\n", a.URL(), where, state)
	}

	a.ReloadOn(hangups)

	tellSystemd(log)

	return a.Attend(signals)
}

// tellSystemd tells it that the start is over (Type=notify), once. The programs that run jobs do
// not get the variable: systemd would not listen to them.
func tellSystemd(log *slog.Logger) {
	_, err := daemon.SdNotify(true, daemon.SdNotifyReady)
	if err != nil {
		log.Warn("systemd was not told that Redrive is ready.", "error", err)
	}
}

// standby says that another process works on the database, or what is wrong with that. A start
// that waits is over as far as systemd has to know: other units must not wait with it.
func (s *serveCommand) standby(c console.Console, log *slog.Logger, why error) {
	tellSystemd(log)

	if s.LogFormat == "json" {
		return
	}

	if held, ok := errors.AsType[*health.LockedError](why); ok {
		fmt.Fprintf(c.Stdout, "Redrive stands by: the process %s works on %s. This one takes over when that stops or dies.\n",
			held.Holder, location.Of(s.DB))
		return
	}

	// The log has what the driver says, on many lines.
	words := why.Error()
	if known, ok := errors.AsType[*health.Fault](why); ok {
		words = known.Words
	}

	fmt.Fprintf(c.Stdout, "Redrive waits for its database: %s.\n", words)
}
