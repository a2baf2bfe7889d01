package resource

import (
	"fmt"
	"log/slog"
	"syscall"
)

// What this process needs of file descriptors. An execution has up to three pipes
// with two ends each, one more for the moment of its start, and what names its
// process; a request has its connection, and one for the lookup of its name.
const (
	ownDescriptors       = 24 // output, polling, listening, locks, configuration
	databaseDescriptors  = 32 // the writer and four readers, with two files each, and checkpoints
	executionDescriptors = 10

	fewDescriptors = 1024 // below that, an operator should know
)

// Shares is how the descriptors of this process are divided.
type Shares struct {
	Limit      int // of all
	Database   int
	Visitors   int // connections of browsers and programs
	Executions int // handlers at work at once
}

// Divide divides the descriptors that the system allows: visitors get the
// connections that they are to have, at most two thirds of what the database and
// the process itself leave, and handlers the rest.
func Divide(limit, visitors int) Shares {
	rest := max(0, limit-ownDescriptors-databaseDescriptors)
	s := Shares{Limit: limit, Database: databaseDescriptors, Visitors: max(1, min(visitors, rest*2/3))}
	s.Executions = max(1, (rest-s.Visitors)/executionDescriptors)
	return s
}

// Descriptors is how many file descriptors this process may have open. The Go
// runtime has raised its soft limit to the hard one at start, and gives programs
// the one from before.
func Descriptors() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of file descriptors: %w", err)
	}

	return int(min(limit.Cur, 1<<20)), nil
}

// Log tells how the descriptors are divided, and loudly when there are few.
func (s Shares) Log(log *slog.Logger) {
	about := []any{"descriptors", s.Limit, "database", s.Database, "connections", s.Visitors, "executions", s.Executions}
	if s.Limit < fewDescriptors {
		log.Warn("The system allows few file descriptors (ulimit -n, LimitNOFILE), which bounds connections and running jobs.", about...)
		return
	}

	log.Debug("Divided the file descriptors of this process.", about...)
}
