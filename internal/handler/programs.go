package handler

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// programs starts the programs of jobs, and ends what they leave behind.
//
// A job's program must not run beside the next execution of its job, not even
// after the dashboard was killed. Two things see to that:
//
//   - Programs are killed with their parent, where the system does that. To
//     Linux the parent is the thread that started them, so one thread starts
//     them all and lives as long as the handlers do.
//   - Each carries a mark in its environment, which everything inherits that it
//     starts. Before the first job is claimed, and whenever a program has ended,
//     whatever carries the mark is ended.
//
// The numbers of processes in the database would not do: after the death of a
// program nothing tells its children's group from a later one of the same
// number. Cgroups would, also for a child that clears its environment, but few
// systems let a service create them. So such a child is not ended when it also
// left the program's process group, and the documents and the log say so.
type programs struct {
	owner  string // the database whose jobs they work on, as their marks name it
	log    *slog.Logger
	open   func() // starts the thread, once
	starts chan func()
	closed chan struct{}
}

func newPrograms() *programs {
	p := &programs{owner: rand.Text(), log: slog.New(slog.DiscardHandler), starts: make(chan func()), closed: make(chan struct{})}
	p.open = sync.OnceFunc(func() { go p.work() })
	return p
}

// work starts programs until close. Its thread ends with it, and with the thread
// whatever still runs.
func (p *programs) work() {
	runtime.LockOSThread()

	for {
		select {
		case start := <-p.starts:
			start()
		case <-p.closed:
			return
		}
	}
}

func (p *programs) close() { close(p.closed) }

var errClosed = errors.New("the dashboard is stopping")

func (p *programs) start(cmd *exec.Cmd) error {
	p.open()

	started := make(chan error, 1)
	select {
	case p.starts <- func() { started <- cmd.Start() }:
		return <-started
	case <-p.closed:
		return errClosed
	}
}

// variable is the name of the mark: OWNER/ID/RUN/EXECUTION.
const variable = "REDRIVE_EXECUTION"

func (p *programs) mark(execution string) string { return variable + "=" + p.owner + "/" + execution }

// execution is what a mark of ours says: ID/RUN/EXECUTION.
func (p *programs) execution(mark string) string { return strings.TrimPrefix(mark, p.mark("")) }

// end kills what an execution left behind, and returns when nothing is left. A
// process that cannot be killed keeps it from returning: the job waits.
func (p *programs) end(execution string) {
	begin, logged := time.Now(), false
	for wait := time.Millisecond; ; wait = min(2*wait, maxLook) {
		left, err := marked(p.mark(execution) + "\x00")
		for _, l := range left {
			l.signal(syscall.SIGKILL)
		}

		if len(left) == 0 && err == nil {
			return
		}

		if !logged && time.Since(begin) > patience {
			logged = true

			p.log.Warn("Processes that a job's program started have not ended yet. The worker waits for them.",
				"execution", execution, "pids", pids(left), "error", err)
		}

		time.Sleep(wait)
	}
}

const (
	maxLook  = 100 * time.Millisecond // between two looks at what is left
	patience = 5 * time.Second        // before the log says that something does not end
)

// takeOver ends what a dead process of the same database left running, and
// returns when nothing is left. Those processes get the time of a program that
// is cancelled.
func (p *programs) takeOver(ctx context.Context) error {
	begin, logged := time.Now(), false
	asked := map[int]time.Time{}         // when, by the number of the process
	for quiet := 0; quiet < 2; quiet++ { // one look can miss a process that is just being started
		left, err := marked(p.mark(""))
		if len(left) > 0 || err != nil {
			quiet = -1
		}

		for _, l := range left {
			p.stop(l, asked)
		}

		if !logged && time.Since(begin) > patience {
			logged = true

			p.log.Warn("Programs left running by a dashboard that died have not ended yet. No job is claimed until they have.",
				"pids", pids(left), "error", err)
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("end the programs left running by a dashboard that died: %w", context.Cause(ctx))
		case <-time.After(maxLook / 10):
		}
	}

	return nil
}

// stop asks a process to end, and kills it when it was asked long enough ago.
func (p *programs) stop(l leftover, asked map[int]time.Time) {
	since, known := asked[l.pid]
	switch {
	case !known:
		asked[l.pid] = time.Now()
		l.signal(syscall.SIGTERM)
		p.log.Warn("A program left running by a dashboard that died is ended before its job runs again.",
			"execution", p.execution(l.mark), "pid", l.pid)
	case time.Since(since) > termGrace:
		l.signal(syscall.SIGKILL)
	default:
		_ = l.process.Release()
	}
}

func pids(left []leftover) (all []int) {
	for _, l := range left {
		all = append(all, l.pid)
	}
	return all
}

// logLimits logs what the operator of programs has to know.
func (p *programs) logLimits() {
	if os.Geteuid() == 0 {
		p.log.Warn("The dashboard runs as root, and so do the programs of jobs: they may do anything on this machine. " +
			"Start the dashboard as a user of its own.")
	}

	if seesMarks() {
		p.log.Info("When an execution ends, its program and every process that it started are ended, " +
			"except a process that leaves the program's group and clears its environment.")
		return
	}

	p.log.Warn("This system does not say which processes a job's program has started. A process that leaves the program's group " +
		"or survives a crash of the dashboard can run at the same time as the next execution of the job.")
}

// leftover is a process that carries a mark.
type leftover struct {
	pid     int
	process *os.Process // open: its number cannot be given to another one
	mark    string
}

// signal is the last use of the leftover. An error says that it has ended.
func (l leftover) signal(s syscall.Signal) {
	_ = l.process.Signal(s)
	_ = l.process.Release()
}
