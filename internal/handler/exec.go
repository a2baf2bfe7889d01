package handler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"redrive/internal/engine"
	"redrive/internal/errortext"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/resource"
	"redrive/internal/retry"
)

const (
	keepStderr = 64 << 10
	keepStdout = 16 << 10

	// termGrace is what a program has between SIGTERM and SIGKILL. It is
	// shorter than what the engine gives a handler that was told to stop.
	termGrace = time.Second

	exitDataErr  = 65 // EX_DATAERR of sysexits.h: the input is wrong
	exitTempFail = 75 // EX_TEMPFAIL: try again later
)

// program does the work of jobs by running one command.
type program struct {
	hide     Hide
	command  []string
	timeout  time.Duration
	programs *programs
}

func newExec(hide Hide, programs *programs, config Exec, field string) (engine.Handler, error) {
	if len(config.Command) == 0 || !filepath.IsAbs(config.Command[0]) {
		return nil, &invalid.Error{Field: field + ".command", Problem: "must begin with the absolute path of a program"}
	}

	if slices.ContainsFunc(config.Command, func(s string) bool { return strings.ContainsRune(s, 0) }) {
		return nil, &invalid.Error{Field: field + ".command", Problem: "holds a NUL character"}
	}

	if err := checkTimeout(config.Timeout, field); err != nil {
		return nil, err
	}

	p := &program{hide: hide, command: slices.Clone(config.Command), timeout: config.Timeout, programs: programs}

	return p.run, nil
}

// run is an [engine.Handler].
func (p *program) run(ctx context.Context, j job.Job) error {
	own, cancel := within(ctx, p.timeout)
	defer cancel()

	stdout, stderr := &tail{limit: keepStdout}, &tail{limit: keepStderr}

	g := p.build(own, j)
	g.cmd.Stdout, g.cmd.Stderr = stdout, stderr

	err := g.run()
	state := g.cmd.ProcessState
	switch {
	case state == nil:
		return p.unstarted(ctx, err)
	case state.Success() && !g.stopped:
		return nil // even when a grandchild kept the pipes open
	}

	f := p.failed(state, stdout.shown(p.hide), stderr.shown(p.hide))
	if g.stopped && ctx.Err() == nil {
		f.ErrorInfo = job.ErrorInfo{Type: "exec.timeout", Message: fmt.Sprintf("%s: ran longer than %v", p.command[0], p.timeout)}
		f.Answer = retry.Answer{} // many programs end well when they are told to stop
	}

	return f
}

// group is a command in a process group of its own.
type group struct {
	*program
	cmd       *exec.Cmd
	execution string // ID/RUN/EXECUTION
	stopped   bool   // it was told to end; valid after run
}

// build prepares the command. When ctx ends, the whole group is asked to end,
// and killed a little later.
func (p *program) build(ctx context.Context, j job.Job) *group {
	f := factsOf(j)
	g := &group{program: p, cmd: exec.CommandContext(ctx, p.command[0], p.command[1:]...), execution: f.execution}

	g.cmd.Stdin = bytes.NewReader(j.Payload)

	g.cmd.Env = append(environment(f), p.programs.mark(f.execution))
	g.cmd.SysProcAttr = attributes()
	g.cmd.WaitDelay = termGrace
	g.cmd.Cancel = func() error {
		g.stopped = true
		return syscall.Kill(-g.cmd.Process.Pid, syscall.SIGTERM)
	}

	return g
}

// run returns when the command has ended, and with it what it started: its
// group, and whatever left the group and still carries the mark.
func (g *group) run() error {
	if err := g.programs.start(g.cmd); err != nil {
		return err
	}

	err := g.cmd.Wait()

	// The number of a group is not given away while it has members. An error
	// says that there are none.
	_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
	g.programs.end(g.execution)

	return err
}

// environment is the facts and what programs cannot do without, but none of
// the secrets that the dashboard itself was started with.
func environment(f facts) []string {
	env := []string{
		"REDRIVE_JOB_ID=" + f.id,
		"REDRIVE_JOB_TYPE=" + f.typ,
		"REDRIVE_JOB_QUEUE=" + f.queue,
		"REDRIVE_JOB_RUN=" + f.run,
		"REDRIVE_JOB_ATTEMPT=" + f.attempt,
		"REDRIVE_IDEMPOTENCY_KEY=" + f.idempotencyKey,
		"TRACEPARENT=" + f.traceparent,
	}
	if f.traceID != "" {
		env = append(env, "REDRIVE_TRACE_ID="+f.traceID)
	}

	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}

	return env
}

func (p *program) unstarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	if short := resource.Shortage(err); short != nil {
		return short
	}

	if errors.Is(err, context.DeadlineExceeded) {
		return &job.Failure{ErrorInfo: job.ErrorInfo{
			Type: "exec.timeout", Message: fmt.Sprintf("%s: not started within %v", p.command[0], p.timeout)}}
	}

	return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "exec.start", Message: err.Error()}}
}

// failed describes a program that ended without success: the error that its
// language printed, or else its last words, are the message, and everything that was
// kept of its output is the trace.
func (p *program) failed(state *os.ProcessState, stdout, stderr string) *job.Failure {
	said := errortext.Program(stderr, stdout)

	f := &job.Failure{ErrorInfo: job.ErrorInfo{Message: said.String()}, Trace: stderr}
	if f.Message == "" {
		f.Message = fmt.Sprintf("%s: %v, and nothing on stderr", p.command[0], state)
	}

	if stdout != "" {
		f.Trace = strings.TrimPrefix(f.Trace+"\n--- stdout ---\n"+stdout, "\n")
	}

	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		f.Type = "exec.signal_" + signalName(status.Signal())
		return f
	}

	f.Type = fmt.Sprintf("exec.exit_%d", state.ExitCode())
	switch state.ExitCode() {
	case exitTempFail:
		f.Answer.Code = retry.CodeRetry
	case exitDataErr:
		f.Answer.Code = retry.CodeDeadLetter
	}

	return f
}

// signalName is the name of a signal without its SIG; a rare one is a number.
func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGABRT: "ABRT", syscall.SIGALRM: "ALRM", syscall.SIGBUS: "BUS", syscall.SIGFPE: "FPE",
		syscall.SIGHUP: "HUP", syscall.SIGILL: "ILL", syscall.SIGINT: "INT", syscall.SIGKILL: "KILL",
		syscall.SIGPIPE: "PIPE", syscall.SIGQUIT: "QUIT", syscall.SIGSEGV: "SEGV", syscall.SIGSYS: "SYS",
		syscall.SIGTERM: "TERM", syscall.SIGTRAP: "TRAP", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
		syscall.SIGXCPU: "XCPU", syscall.SIGXFSZ: "XFSZ",
	}
	if name, ok := names[s]; ok {
		return name
	}

	return fmt.Sprint(int(s))
}
