// Package shortage names what this process or machine can run out of, and the error of a
// handler that could not do its work for that reason.
package shortage

import (
	"fmt"
	"time"
)

// Resource is something of this process or machine without which no job can run.
type Resource string

const (
	Descriptors Resource = "descriptors" // files and connections that are open
	Processes   Resource = "processes"
	Memory      Resource = "memory"
	Ports       Resource = "ports" // of this machine, for connections to others
	Disk        Resource = "disk"
	Database    Resource = "database"
)

// Resources lists them all.
func Resources() []Resource {
	return []Resource{Descriptors, Processes, Memory, Ports, Disk, Database}
}

var lack = map[Resource]string{
	Descriptors: "this process has no file descriptor left; raise its limit (ulimit -n, LimitNOFILE), or let fewer jobs run at once",
	Processes:   "the system starts no more processes for this user; raise the limit (ulimit -u, TasksMax), or let fewer jobs run at once",
	Memory:      "the system has no memory left for another process or connection; give it more, or let fewer jobs run at once",
	Ports:       "this machine has no port left for a connection to that address; close connections, or widen the range of ports",
	Disk:        "the disk is full; make room",
	Database:    "the database refuses writes or does not answer; see the log",
}

// Lack says in words that there is no more, and what to do.
func (r Resource) Lack() string { return lack[r] }

// Error is the error of a handler that could not do its work because this
// process or machine had run out of something. It is no fault of the job: its
// execution does not count, and nothing is claimed until the shortage is over.
type Error struct {
	Of  Resource
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%v)", e.Of.Lack(), e.Err) }

// Unwrap gives what the system said.
func (e *Error) Unwrap() error { return e.Err }

// ErrorType is the type of the error of an execution that met a shortage.
const ErrorType = "shortage"

// OpenBreaker says since when no jobs are claimed, and why.
type OpenBreaker struct {
	Of     Resource
	Since  time.Time
	Reason string
}

// Counts tells what became of one resource since the start of the process.
type Counts struct {
	Openings  int64 // how often claiming stopped for it
	GivenBack int64 // executions that met it
}
