// Command dashboard is Redrive: the dashboard, the worker engine and the
// database in one process.
//
// main.go owns the flags, the signals and the exit code: 0 for what was done, 1
// for what failed, 2 for what was asked wrongly, 3 for a database that another
// start does not help.
// Everything that runs is built, started and stopped by the app (app.go and
// background.go), which knows none of them.
//
// The other commands are grouped by what they need. Those in local.go read files
// and open a database themselves. Those in remote.go, jobs.go and enqueue.go ask a
// running dashboard through its API; connect.go finds it. Those in accounts.go do
// either, depending on whether a dashboard has the database open. source.go looks at the
// queues of other programs. demo.go runs the app
// in a made-up world.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/coreos/go-systemd/v22/daemon"

	"redrive/internal/client"
	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/fault"
	"redrive/internal/invalid"
	"redrive/internal/store/sqlite"
	"redrive/internal/wire"
)

// version is set by the linker.
var version = "dev"

// commands is the command line: each field is a command, each field of a command
// a flag or an argument. The parser calls the Run method of the command.
type commands struct {
	Serve   serve          `cmd:"" default:"withargs" help:"Run the dashboard and the worker engine (the default)."`
	Demo    demoCommand    `cmd:"" help:"Run a made-up shop whose jobs fail, on a temporary database."`
	Enqueue enqueue        `cmd:"" help:"Send jobs to a running dashboard."`
	List    listCommand    `cmd:"" help:"List the jobs that match a filter."`
	Show    showCommand    `cmd:"" help:"Show a job with its attempts and errors."`
	Replay  replayCommand  `cmd:"" help:"Replay one job, or the jobs that match a filter, through a running dashboard."`
	Discard discardCommand `cmd:"" help:"Discard the jobs that match a filter, through a running dashboard."`
	Check   check          `cmd:"" help:"Check a configuration file."`
	Source  sourceCommand  `cmd:"" help:"Look at queues of other programs whose dead letters Redrive can show."`
	User    userCommand    `cmd:"" help:"Add, list, change and remove users."`
	Token   tokenCommand   `cmd:"" help:"Create, list and revoke tokens for programs."`
	Reload  reloadCommand  `cmd:"" help:"Reload the configuration of a running dashboard."`
	Health  healthCommand  `cmd:"" help:"Check whether a running dashboard is ready; exit status 0 or 1."`
	Policy  policy         `cmd:"" help:"Show the delays of a retry policy and their total."`
	Seed    seedCommand    `cmd:"" help:"Write a large database for benchmarks."`
	Backup  backupCommand  `cmd:"" help:"Back up a database, even while a dashboard has it open."`
	Restore restoreCommand `cmd:"" help:"Restore a database from a backup."`
	Doctor  doctor         `cmd:"" help:"Check a database without changing it: the file, the counts, the audit log."`
	Version show           `cmd:"" help:"Print the version."`

	Completion completion `cmd:"" help:"Print a script that completes commands and flags in bash, zsh or fish."`
	Suggest    suggest    `cmd:"" hidden:"" help:"Print completions for the last word."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// helpParts are the parts of flags that are too long to be written beside them,
// and those that several flags share.
func helpParts() kong.Vars {
	return kong.Vars{
		"admin_token": "Needs an admin's token in REDRIVE_TOKEN.",
		"base_path":   "Path under which everything is served, for example /redrive (the root, or base_path in the configuration).",
		"filter": "Filter, written as in the search box, for example 'queue:orders type:email.* since:2h'. " +
			"Without a state, it selects dead letters.",
		"level":  "debug, info, warn or error",
		"levels": "debug,info,warn,error",
		"policy": "A preset (for example sidekiq), a policy from the configuration, default, queue:NAME, type:NAME, or a file with a policy.",
		"server": usualServer,
		"token":  "Reads the token from REDRIVE_TOKEN.",

		"version": "redrive " + version,
	}
}

// usageError is a wrong flag or value: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usage returns a usageError with a formatted text.
func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	// The heap is a few megabytes: without more room the collector would run many
	// times a second while jobs run.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // make bench and bench-pages say the same
	}
	os.Exit(run(os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr}))
}

// run executes one command line and returns the exit code.
func run(args []string, c console) int {
	c = c.hiding(args)
	answered := false // by --help
	parser, err := kong.New(&commands{},
		kong.Name("dashboard"), kong.Description("Run background jobs, see why they failed, run them again."),
		kong.Writers(c.stdout, c.stderr), kong.Exit(func(int) { answered = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Bind(c), helpParts())
	if err != nil { // unreachable unless the struct above is wrong
		panic(err)
	}
	// The parser would replace what is not valid UTF-8, and a job would get another type.
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return fail(c, usage("%q is not valid UTF-8", args[i]))
	}
	command, err := parser.Parse(args)
	if answered {
		return 0
	}
	if err != nil {
		return fail(c, misused(err, args, parser.Model.Children))
	}
	if err := checkDatabases(command.Flags()); err != nil {
		return fail(c, err)
	}
	if err := command.Run(); err != nil {
		return fail(c, err)
	}
	return 0
}

// misused is the error of a wrong command line, with advice. The parser takes what
// begins with a dash for a flag, also a negative number or duration.
func misused(err error, args []string, known []*kong.Node) error {
	for i, arg := range args {
		if len(arg) < 2 || arg[0] != '-' || !strings.ContainsAny(arg[1:2], "0123456789P") {
			continue
		}
		if i > 0 && slices.Contains([]string{"--delay", "--run-at", "--ttr"}, args[i-1]) {
			if _, wrong := wire.ParseDuration(arg); wrong != nil {
				return usage("%s: %w", args[i-1], wrong)
			}
		}
		if args[0] == "enqueue" && !strings.HasPrefix(args[i-1], "--") {
			return usage("%w; a payload that begins with a dash goes after --, for example: dashboard enqueue TYPE -- %s", err, arg)
		}
	}
	meant := ""
	if len(args) > 0 {
		var names []string
		for _, command := range known {
			if !command.Hidden && command.Name != args[0] {
				names = append(names, command.Name)
			}
		}
		meant = invalid.DidYouMean(args[0], names)
	}
	return usage("%w%s; run dashboard --help for a list of commands", err, meant)
}

// fail prints what went wrong, each error in one line, because the logs of a service
// are read line by line, and returns the exit code.
func fail(c console, err error) int {
	var wrong config.Errors
	var refused wrongFile
	var paused *pausedError
	switch {
	case errors.As(err, new(loggedError)):
	case errors.As(err, &wrong):
		for _, e := range wrong {
			fmt.Fprintf(c.stderr, "dashboard: %v\n", e)
		}
	case errors.As(err, &refused):
		for line := range strings.SplitSeq(refused.Error(), "\n") {
			fmt.Fprintf(c.stderr, "dashboard: %s\n", printable(line))
		}
	case errors.As(err, &paused):
		fmt.Fprintf(c.stderr, "dashboard: %s\n", printable(clip.Line(paused.why)))
		for _, step := range paused.steps {
			fmt.Fprintf(c.stderr, "  %s\n", printable(step))
		}
	default:
		fmt.Fprintf(c.stderr, "dashboard: %s\n", clip.Line(err.Error()))
	}
	var answer *client.Error
	if errors.As(err, new(usageError)) || errors.As(err, &answer) && answer.Refused() {
		return 2
	}

	// Starting again does not help.
	if errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsafe) || errors.Is(err, sqlite.ErrForeign) {
		return 3
	}
	return 1
}

// serve is the command that runs everything.
type serve struct {
	Listen    string `help:"Address to listen on (${default})." default:"127.0.0.1:8080" env:"REDRIVE_LISTEN" placeholder:"HOST:PORT"`
	DB        string `name:"db" help:"Database file (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"FILE"`
	Config    string `help:"Configuration file (redrive.yaml, where it exists)." env:"REDRIVE_CONFIG" placeholder:"FILE"`
	LogLevel  string `help:"${level} (${default})." default:"info" enum:"${levels}" env:"REDRIVE_LOG_LEVEL" placeholder:"LEVEL"`
	LogFormat string `help:"text or json (${default})." default:"text" enum:"text,json" env:"REDRIVE_LOG_FORMAT" placeholder:"FORMAT"`

	Relaxed bool `help:"Do not wait for the disk at each commit: faster, but a power cut may lose the last moments." env:"REDRIVE_RELAXED"`

	BasePath       *string `help:"${base_path}" env:"REDRIVE_BASE_PATH" placeholder:"PATH"`
	InsecureNoAuth bool    `help:"Accept connections from other machines even if no login is required."`
}

// Run serves until a signal or a failure. Who reads the log as JSON finds nothing in
// another format: the failure is the last line of the log then.
func (s *serve) Run(c console) error {
	log, err := newLog(c.stderr, s.LogLevel, s.LogFormat)
	if err != nil {
		return err
	}
	if err = s.run(c, log); err != nil && s.LogFormat == "json" {
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
func (s *serve) run(c console, log *slog.Logger) error {
	if err := checkListen(s.Listen, true); err != nil {
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
		return usage("--base-path %q is not a path, for example /redrive", base)
	}
	if s.Relaxed {
		log.Warn("Relaxed: a power cut may lose the last moments.")
	}
	signal.Ignore(syscall.SIGXFSZ) // a file that may not grow is an error of the database, not a crash
	ctx, signals, release := interrupts()
	defer release()
	a, err := startApp(ctx, parts{
		listen: s.Listen, db: s.DB, relaxed: s.Relaxed, open: s.InsecureNoAuth, base: base, config: settings, log: log,
		reload: cmp.Or(settings.File(), usualConfig),
	})
	if err != nil {
		return unlessInterrupted(ctx, log, err)
	}
	log.Info("Redrive is ready.", "version", version, "url", a.url(), "database", s.DB, "config", cmp.Or(settings.File(), "none"),
		"handlers", append([]string{}, slices.Sorted(maps.Keys(settings.Handlers))...), "queues", append([]string{}, settings.Queues()...))
	if s.LogFormat != "json" {
		state := ""
		if a.store.Made() {
			state = ", which is new"
		}
		fmt.Fprintf(c.stdout, "Redrive is at %s, its database is %s%s.\n", a.url(), s.DB, state)
	}
	a.reloadOnHangup()
	// systemd waits for this (Type=notify). The programs that run jobs do not get the
	// variable: systemd would not listen to them.
	if _, err := daemon.SdNotify(true, daemon.SdNotifyReady); err != nil {
		log.Warn("systemd was not told that Redrive is ready.", "error", err)
	}
	return attend(a, signals, log)
}

// interrupts returns the signals that end a command. The context ends with the
// first one: it is for the start, before attend reads the signals.
func interrupts() (ctx context.Context, signals <-chan os.Signal, release func()) {
	both := make(chan os.Signal, 2)
	signal.Notify(both, syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	return ctx, both, func() { signal.Stop(both); cancel() }
}

// unlessInterrupted returns the error of a start, or nil when a signal ended it.
func unlessInterrupted(ctx context.Context, log *slog.Logger, err error) error {
	if ctx.Err() == nil {
		return err
	}
	log.Info("Stopped before startup finished.", "because", err)
	return nil
}

// attend waits for the end of the app and stops it. The first signal stops it
// gracefully, the second at once. A failure leaves little time, because only a
// new start can help.
func attend(a *app, signals <-chan os.Signal, log *slog.Logger) error {
	ctx, hurry := context.WithCancel(context.Background())
	defer hurry()
	var failure error
	var impatient, over <-chan time.Time
	select {
	case <-signals:
		log.Info("Stopping; running jobs have 30 seconds. A second signal stops at once.")
	case failure = <-a.failed:
		impatient = time.After(failureGrace)
		if !errors.Is(failure, errStartOver) { // who starts over must not leave anything running
			log.Error("Stopping after a failure.", "error", failure)
			over = time.After(2 * failureGrace)
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- a.stop(ctx) }()
	for {
		select {
		case <-signals:
			hurry()
		case <-impatient:
			hurry()
		case <-over: // whatever hangs ends with the process
			return failure
		case err := <-stopped:
			return errors.Join(failure, err)
		}
	}
}

// failureGrace bounds a graceful stop once something has failed, and then again
// the stop at once that follows.
const failureGrace = 2 * time.Second

// newLog returns a log that shows what has this level or a higher one, as text or
// as JSON.
func newLog(w io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError{err}
	}
	options := &slog.HandlerOptions{Level: least}

	// A password is hidden in the values before a line is made of them. In the line, it
	// could also be a number, or a part of the syntax.
	if h, ok := w.(*hider); ok {
		w, options.ReplaceAttr = h.to, h.attribute
	}

	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}

// usualConfig is the configuration file that is read where it exists.
const usualConfig = "redrive.yaml"

// loadConfig reads the named file. Without a name it reads the usual one where that
// exists, and takes the built-in configuration otherwise.
func loadConfig(path string) (*config.Config, error) { return loadConfigBy(config.Load, path) }

func loadConfigBy(load func(path string) (*config.Config, error), path string) (*config.Config, error) {
	if path == "" {
		if _, err := os.Stat(usualConfig); errors.Is(err, fs.ErrNotExist) {
			return config.Default(), nil
		}
		path = usualConfig
	}
	c, err := load(path)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// checkListen refuses an address that can be reached from the network, unless
// that is allowed: because people have to log in, or because a flag says so.
func checkListen(address string, allowed bool) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return usage("--listen %q is not an address, for example 127.0.0.1:8080", address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return usage("--listen %s: %s is not a port; choose one from 1 to 65535, or 0 for any that is free", address, port)
	}
	if !allowed && !isLoopback(address) {
		return usage("--listen %s can be reached from the network, and no login is configured; "+
			"add a user (dashboard user add NAME --role admin), listen on 127.0.0.1, or add --insecure-no-auth", address)
	}
	return nil
}

// isLoopback reports whether an address can be reached from this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
