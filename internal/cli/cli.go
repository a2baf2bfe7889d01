// Package cli is the command line. Each command is a struct whose fields are its flags and
// arguments and whose Run method carries it out; [Execute] finds the command and returns the
// exit status of the process: 0 for what was done, 1 for what failed, 2 for what was asked
// wrongly, 3 for a database that another start does not help.
//
// The commands are grouped by what they need. Two run the program itself, by internal/app:
// serve.go and demo.go, the latter in a made-up world. Those in local.go and backup.go read
// files and open a database themselves. source.go and discover.go look at the queues of other
// programs, by look.go.
//
// The others ask a running dashboard through its API; package reach finds it. enqueue.go sends
// jobs (jobflags.go describes one, lines.go reads many). list.go and show.go print jobs, in the
// words of jobs.go. bulk.go and replay.go act on many jobs: operation.go begins such an
// operation, preview.go shows what it would do, watch.go follows it. dashboard.go is about the
// dashboard itself. Those in users.go and tokens.go do without it unless it has the database
// open.
//
// A command reads and writes through a [console.Console], which also has the signals for those
// that ask for them.
package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/client"
	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/fault"
	"redrive/internal/invalid"
	"redrive/internal/store/sqlite"
	"redrive/internal/usage"
	"redrive/internal/wire"
)

// commands is the command line: each field is a command, each field of a command
// a flag or an argument. The parser calls the Run method of the command.
type commands struct {
	Serve   serveCommand   `cmd:"" default:"withargs" help:"Run the dashboard and the worker engine (the default)."`
	Demo    demoCommand    `cmd:"" help:"Run a made-up shop whose jobs fail, on a temporary database."`
	Enqueue enqueueCommand `cmd:"" help:"Send jobs to a running dashboard."`
	List    listCommand    `cmd:"" help:"List the jobs that match a filter."`
	Show    showCommand    `cmd:"" help:"Show a job with its attempts and errors."`
	Replay  replayCommand  `cmd:"" help:"Replay one job, or the jobs that match a filter, through a running dashboard."`
	Discard discardCommand `cmd:"" help:"Discard the jobs that match a filter, through a running dashboard."`
	Check   checkCommand   `cmd:"" help:"Check a configuration file."`
	Source  sourceCommand  `cmd:"" help:"Look at queues of other programs whose dead letters Redrive can show."`
	User    userCommand    `cmd:"" help:"Add, list, change and remove users."`
	Token   tokenCommand   `cmd:"" help:"Create, list and revoke tokens for programs."`
	Reload  reloadCommand  `cmd:"" help:"Reload the configuration of a running dashboard."`
	Health  healthCommand  `cmd:"" help:"Check whether a running dashboard is ready; exit status 0 or 1."`
	Policy  policyCommand  `cmd:"" help:"Show the delays of a retry policy and their total."`
	Seed    seedCommand    `cmd:"" help:"Write a large database for benchmarks."`
	Backup  backupCommand  `cmd:"" help:"Back up a database, even while a dashboard has it open."`
	Restore restoreCommand `cmd:"" help:"Restore a database from a backup."`
	Migrate migrateCommand `cmd:"" help:"Copy a database into another one: from a file to PostgreSQL, back, or to another server."`
	Doctor  doctorCommand  `cmd:"" help:"Check a database without changing it: the file, the counts, the audit log."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print a script that completes commands and flags in bash, zsh or fish."`
	Suggest    suggestCommand    `cmd:"" hidden:"" help:"Print completions for the last word."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// helpParts are the parts of flags that are too long to be written beside them,
// and those that several flags share.
func helpParts(version string) kong.Vars {
	return kong.Vars{
		"admin_token": "Needs an admin's token in REDRIVE_TOKEN.",
		"base_path":   "Path under which everything is served, for example /redrive (the root, or base_path in the configuration).",
		"database":    "Database: a file, or one on PostgreSQL, as postgres://user@host/name",
		"filter": "Filter, written as in the search box, for example 'queue:orders type:email.* since:2h'. " +
			"Without a state, it selects dead letters.",
		"level":  "debug, info, warn or error",
		"levels": "debug,info,warn,error",
		"policy": "A preset (for example sidekiq), a policy from the configuration, default, queue:NAME, type:NAME, or a file with a policy.",
		"server": reach.UsualServer,
		"token":  "Reads the token from REDRIVE_TOKEN.",

		"version": "redrive " + version,
	}
}

// Execute runs one command line and returns the exit code.
func Execute(args []string, c console.Console) int {
	c = c.Hiding(args)
	answered := false // by --help

	parser, err := kong.New(&commands{},
		kong.Name("dashboard"), kong.Description("Run background jobs, see why they failed, run them again."),
		kong.Writers(c.Stdout, c.Stderr), kong.Exit(func(int) { answered = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Bind(c), helpParts(c.Version))
	if err != nil { // unreachable unless the struct above is wrong
		panic(err)
	}
	// The parser would replace what is not valid UTF-8, and a job would get another type.
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return fail(c, usage.Errorf("%q is not valid UTF-8", args[i]))
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

// checkDatabases refuses a URL of a database that is not Redrive's own, where a flag names a
// database.
func checkDatabases(flags []*kong.Flag) error {
	for _, f := range flags {
		if slices.Contains([]string{"db", "from", "to"}, f.Name) {
			if err := reach.CheckDatabase(f.Name, f.Target.String()); err != nil {
				return err
			}
		}
	}

	return nil
}

// misused is the error of a wrong command line, with advice. The parser takes what
// begins with a dash for a flag, also a negative number or duration.
func misused(err error, args []string, known []*kong.Node) error {
	// Look for an argument such as "-5s" or "-PT5S" that is what the parser complains about.
	for i, arg := range args {
		if len(arg) < 2 || arg[0] != '-' || !strings.ContainsAny(arg[1:2], "0123456789P") {
			continue
		}

		// A negative duration. The error says so, and does not speak of flags.
		if i > 0 && slices.Contains([]string{"--delay", "--run-at", "--ttr"}, args[i-1]) && strings.HasPrefix(err.Error(), args[i-1]+": ") {
			if _, wrong := wire.ParseDuration(arg); wrong != nil {
				return usage.Errorf("%s: %w", args[i-1], wrong)
			}
		}

		// The parser names the first letter of what it took for several short flags.
		if args[0] == "enqueue" && strings.HasPrefix(err.Error(), "unknown flag "+arg[:2]) {
			return usage.Errorf("%w; a payload that begins with a dash goes after --, for example: dashboard enqueue TYPE -- %s", err, arg)
		}
	}

	// The name of a command may be misspelt.
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

	return usage.Errorf("%w%s; run dashboard --help for a list of commands", err, meant)
}

// fail prints what went wrong, each error in one line, because the logs of a service
// are read line by line, and returns the exit code.
func fail(c console.Console, err error) int {
	var wrong config.Errors

	var refused wrongFile
	var paused *pausedError
	switch {
	case errors.As(err, new(loggedError)):
	// A file can have several faults, each of which has a line of its own.
	case errors.As(err, &wrong):
		for _, e := range wrong {
			fmt.Fprintf(c.Stderr, "dashboard: %s\n", console.Printable(e.Error()))
		}
	case errors.As(err, &refused):
		for line := range strings.SplitSeq(refused.Error(), "\n") {
			fmt.Fprintf(c.Stderr, "dashboard: %s\n", console.Printable(line))
		}
	case errors.As(err, &paused):
		fmt.Fprintf(c.Stderr, "dashboard: %s\n", console.Printable(clip.Line(paused.why)))

		for _, step := range paused.steps {
			fmt.Fprintf(c.Stderr, "  %s\n", console.Printable(step))
		}
	default:
		fmt.Fprintf(c.Stderr, "dashboard: %s\n", console.Printable(clip.Line(err.Error())))
	}

	// The exit code is 2 if what was asked for is wrong.
	var answer *client.Error
	if errors.As(err, new(usage.Error)) || errors.As(err, &answer) && answer.Refused() {
		return 2
	}

	// Starting again does not help.
	if errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsafe) || errors.Is(err, sqlite.ErrForeign) {
		return 3
	}

	return 1
}
