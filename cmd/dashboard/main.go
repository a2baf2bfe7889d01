// Command dashboard is Redrive: the dashboard, the worker engine and the
// database in one process.
//
// This file has what belongs to a process and can be there only once: its arguments, its
// signals and its exit status. The command line is read in internal/cli, and what runs is
// built and stopped in internal/app; neither of them ends the process or receives its signals
// unless it is given them here.
package main

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"redrive/internal/cli"
	"redrive/internal/cli/console"
)

// version is set by the linker.
var version = "dev"

func main() {
	// The heap is a few megabytes: without more room the collector would run many
	// times a second while jobs run.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // make bench and bench-pages say the same
	}

	// A file that may not grow is an error of the database, not a crash.
	signal.Ignore(syscall.SIGXFSZ)

	os.Exit(cli.Execute(os.Args[1:], console.Console{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals, Version: version,
	}))
}

// signals hands these signals to the command that asks for them, until it releases them. A
// signal that no command has asked for ends the process.
func signals(which ...os.Signal) (received <-chan os.Signal, release func()) {
	both := make(chan os.Signal, 2)
	signal.Notify(both, which...)
	return both, func() { signal.Stop(both) }
}
