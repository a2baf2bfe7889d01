package handler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/engine"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retry"
)

// helper is what this test binary does when an exec handler runs it.
func helper(name string, args []string) bool {
	switch name {
	case "help-copy": // payload and surroundings into a file
		payload, _ := io.ReadAll(os.Stdin)
		out := fmt.Sprintf("%q\n%q\n%s", payload, args[1:], strings.Join(os.Environ(), "\n"))
		os.WriteFile(args[0], []byte(out), 0o600)
	case "help-exit":
		fmt.Fprintln(os.Stdout, "to stdout")
		fmt.Fprint(os.Stderr, "first line\nlast words\n\n")
		code, _ := strconv.Atoi(args[0])
		exit(code)
	case "help-traceback":
		out := map[string]*os.File{"stderr": os.Stderr, "stdout": os.Stdout}[args[0]]
		fmt.Fprint(out, "Traceback (most recent call last):\n  File \"/app/work.py\", line 3, in bill\nValueError: no rate for XAU\n\nclosing\n")
		exit(1)
	case "help-quiet":
		exit(9)
	case "help-flood":
		for i := range 100_000 {
			fmt.Fprintf(os.Stderr, "stderr line %d\n", i)
			fmt.Fprintf(os.Stdout, "stdout line %d\n", i)
		}
		exit(1)
	case "help-hang": // with a grandchild; both ignore SIGTERM, as args say
		hang(args)
	case "help-part": // hangs, or ends well, with a grandchild that left its group and session
		part(args)
	case "help-polite": // ends well when told to
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		<-told
	case "help-leave": // leaves a grandchild behind that holds the pipes
		child := exec.Command(os.Args[0], "help-hang", args[0])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.Start()
		waitForFile(args[0])
	default:
		return false
	}
	exit(0)
	return true
}

// exit ends a helper at once: the race detector would sleep for a second.
func exit(code int) { syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0) }

// hang writes its process id to a file and waits forever.
func hang(args []string) {
	signal.Ignore(syscall.SIGTERM)
	if len(args) > 1 {
		child := exec.Command(os.Args[0], "help-hang", args[1])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.Start()
		waitForFile(args[1])
	}
	os.WriteFile(args[0]+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
	os.Rename(args[0]+".new", args[0])
	<-time.After(time.Minute)
}

// part starts a grandchild in a session of its own, and hangs if args say so.
func part(args []string) {
	child := exec.Command(os.Args[0], "help-hang", args[1])
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Start()
	waitForFile(args[1])
	if args[0] == "hang" {
		<-time.After(time.Minute)
	}
}

func waitForFile(name string) {
	exists := func() bool {
		_, err := os.Stat(name)
		return err == nil
	}
	for ; !exists(); time.Sleep(time.Millisecond) {
	}
}

// runs returns a handler that runs this binary as a helper.
func runs(t *testing.T, timeout time.Duration, args ...string) engine.Handler {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return build(t, handler.Config{Exec: &handler.Exec{Command: append([]string{self}, args...), Timeout: timeout}})
}

// told runs help-copy and returns payload and arguments as it saw them, quoted,
// and its environment.
func told(t *testing.T, j job.Job) (payload, args string, env []string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out")
	if err := runs(t, 0, "help-copy", name, "an argument")(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	return lines[0], lines[1], lines[2:]
}

// What a language prints of an uncaught error is worth more than the last line; PHP
// prints it to standard output.
func TestExec_MessageIsTheErrorOfATraceback(t *testing.T) {
	for _, stream := range []string{"stderr", "stdout"} {
		f := failed(t, runs(t, 0, "help-traceback", stream), testJob())
		if f.Type != "exec.exit_1" || f.Message != "ValueError: no rate for XAU" || !contains(f.Trace, "line 3, in bill") {
			t.Errorf("a traceback on %s: failure = %s: %s\n%s", stream, f.Type, f.Message, f.Trace)
		}
	}
}

func TestExec_TellsTheProgramWhatItNeeds(t *testing.T) {
	t.Setenv("REDRIVE_SECRET", "hidden")
	t.Setenv("LANG", "C.UTF-8")
	j := testJob()
	j.Type, j.TraceID = "nul\x00 and täst", "t 1"
	payload, args, env := told(t, j)
	if payload != strconv.Quote(`{"to":"anna"}`) || args != `["an argument"]` {
		t.Errorf("payload %s, arguments %s", payload, args)
	}
	for _, want := range []string{
		"REDRIVE_JOB_ID=" + testID, "REDRIVE_JOB_TYPE=nul%00%20and%20t%C3%A4st", "REDRIVE_JOB_QUEUE=mail",
		"REDRIVE_JOB_RUN=2", "REDRIVE_JOB_ATTEMPT=3", "REDRIVE_IDEMPOTENCY_KEY=" + testID + "/2", "REDRIVE_TRACE_ID=t%201",
		"LANG=C.UTF-8", "PATH=" + os.Getenv("PATH"),
	} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, line := range env {
		name, _, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "REDRIVE_JOB_") && !slices.Contains([]string{"REDRIVE_IDEMPOTENCY_KEY", "REDRIVE_EXECUTION", "REDRIVE_TRACE_ID", "TRACEPARENT", "PATH", "HOME", "LANG"}, name) {
			t.Errorf("the environment holds %s", line)
		}
	}
}

func TestExec_PayloadsAreInert(t *testing.T) {
	corpus := []string{
		"", "$(touch pwned)", "`id`", "; rm -rf /", "| cat /etc/passwd", "&& reboot", "\n-rf\n", "--help", "-", "../../etc/passwd",
		"${IFS}", "'\"\\", "%s%n%x", "\x00\x01\xff", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", strings.Repeat("A", 1<<20),
	}
	for _, text := range corpus {
		j := testJob()
		j.Payload = []byte(text)
		j.Type = text[:min(len(text), 200)]
		payload, args, _ := told(t, j)
		if payload != strconv.Quote(text) || args != `["an argument"]` {
			t.Errorf("payload %.40q arrived as %.40s, with arguments %s", text, payload, args)
		}
	}
}

func TestExec_ExitCodes(t *testing.T) {
	tests := []struct {
		code int
		want retry.Code
	}{{1, ""}, {2, ""}, {64, ""}, {65, retry.CodeDeadLetter}, {75, retry.CodeRetry}, {255, ""}}
	for _, test := range tests {
		f := failed(t, runs(t, 0, "help-exit", strconv.Itoa(test.code)), testJob())
		if f.Type != fmt.Sprintf("exec.exit_%d", test.code) || f.Answer.Code != test.want || f.Message != "last words" {
			t.Errorf("exit %d: %s: %s, answer %q", test.code, f.Type, f.Message, f.Answer.Code)
		}
		if f.Trace != "first line\nlast words\n\n\n--- stdout ---\nto stdout\n" {
			t.Errorf("trace = %q", f.Trace)
		}
	}
	if err := runs(t, 0, "help-exit", "0")(t.Context(), testJob()); err != nil {
		t.Errorf("exit 0: %v", err)
	}
}

func TestExec_SaysSoWhenThereIsNothingToSay(t *testing.T) {
	f := failed(t, runs(t, 0, "help-quiet"), testJob())
	if !strings.HasSuffix(f.Message, "exit status 9, and nothing on stderr") || f.Trace != "" {
		t.Errorf("failure = %+v", f.ErrorInfo)
	}
}

// Not HUP nor INT: who runs the tests in the background may have them ignored.
func TestExec_NamesTheSignal(t *testing.T) {
	for _, name := range []string{"KILL", "TERM", "USR1", "ALRM"} {
		h := build(t, handler.Config{Exec: &handler.Exec{Command: []string{"/bin/sh", "-c", "kill -" + name + " $$"}}})
		if f := failed(t, h, testJob()); f.Type != "exec.signal_"+name {
			t.Errorf("%s: %s: %s", name, f.Type, f.Message)
		}
	}
}

func TestExec_ProgramThatCannotBeStarted(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(notExecutable, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/no/such/program", "/", notExecutable} {
		h := build(t, handler.Config{Exec: &handler.Exec{Command: []string{path}}})
		if f := failed(t, h, testJob()); f.Type != "exec.start" || !contains(f.Message, path) {
			t.Errorf("%s: %v", path, f)
		}
	}
}

func TestExec_KeepsTheEndOfALongOutput(t *testing.T) {
	f := failed(t, runs(t, 0, "help-flood"), testJob())
	if f.Message != "stderr line 99999" || len(f.Trace) > 82<<10 || len(f.Trace) < 80<<10 {
		t.Errorf("message %q, a trace of %d bytes", f.Message, len(f.Trace))
	}
	if !strings.HasPrefix(f.Trace, "[cut] …") || !strings.HasSuffix(f.Trace, "stdout line 99999\n") {
		t.Errorf("trace = %.60q … %q", f.Trace, f.Trace[len(f.Trace)-40:])
	}
}

func TestExec_ProgramThatReadsNoPayload(t *testing.T) {
	j := testJob()
	j.Payload = bytes.Repeat([]byte("x"), 1<<20)
	if err := runs(t, 0, "help-exit", "0")(t.Context(), j); err != nil {
		t.Errorf("the handler returned %v", err)
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pidFile string) {
	t.Helper()
	for late := time.Now().Add(time.Minute); alive(t, pidFile); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("the process of %s is still alive", pidFile)
		}
	}
}

// alive reports whether a process still executes anything. A zombie does not.
func alive(t *testing.T, pidFile string) bool {
	t.Helper()
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	line, _ := os.ReadFile("/proc/" + string(pid) + "/stat") // PID (NAME) STATE PPID PGRP SESSION TTY TPGID FLAGS
	_, rest, _ := strings.Cut(string(line), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 7 {
		return false
	}
	const exiting = 4 // PF_EXITING of the kernel
	flags, err := strconv.Atoi(fields[6])
	return err == nil && flags&exiting == 0
}

// A program and its own child ignore SIGTERM: both are killed.
func TestExec_KillsTheWholeGroupWhenTheExecutionEnds(t *testing.T) {
	child, grandchild := filepath.Join(t.TempDir(), "child"), filepath.Join(t.TempDir(), "grandchild")
	h := runs(t, 0, "help-hang", child, grandchild)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h(ctx, testJob()) }()
	waitForFile(child)
	cancel()
	var f *job.Failure
	if err := <-ended; !errors.As(err, &f) || f.Type != "exec.signal_KILL" {
		t.Errorf("the handler returned %v", err)
	}
	gone(t, child)
	gone(t, grandchild)
}

func TestExec_KillsWhatItsProgramLeavesBehind(t *testing.T) {
	grandchild := filepath.Join(t.TempDir(), "grandchild")
	if err := runs(t, 0, "help-leave", grandchild)(t.Context(), testJob()); err != nil {
		t.Errorf("the program succeeded, but the handler returned %v", err)
	}
	gone(t, grandchild)
}

// What left the program's group ends with its execution all the same: when the
// program ends well, and when it is stopped.
func TestExec_KillsWhatLeavesItsGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which processes a program has started")
	}
	for _, way := range []string{"end", "hang"} {
		grandchild := filepath.Join(t.TempDir(), "grandchild")
		h := runs(t, 0, "help-part", way, grandchild)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h(ctx, testJob()) }()
		waitForFile(grandchild)
		if way == "hang" {
			cancel()
		}
		if err := <-ended; (err == nil) != (way == "end") {
			t.Errorf("%s: the handler returned %v", way, err)
		}
		if alive(t, grandchild) {
			t.Errorf("%s: the grandchild is alive although its execution has ended", way)
		}
		cancel()
	}
}

// The execution 5 is not the execution 50.
func TestExec_EndsOnlyItsOwn(t *testing.T) {
	grandchild := filepath.Join(t.TempDir(), "grandchild")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	set, err := handler.New(map[string]handler.Config{
		"hangs": {Exec: &handler.Exec{Command: []string{self, "help-part", "hang", grandchild}}},
		"ends":  {Exec: &handler.Exec{Command: []string{self, "help-exit", "0"}}},
	}, redact.Default().TextFrom)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	hangs, _ := set.Lookup("hangs")
	ends, _ := set.Lookup("ends")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	long := testJob()
	long.Execution = 50
	go func() { ended <- hangs(ctx, long) }()
	waitForFile(grandchild)
	other := testJob() // its execution is 5
	if err := ends(t.Context(), other); err != nil {
		t.Error(err)
	}
	if !alive(t, grandchild) {
		t.Error("it was ended by the end of another execution")
	}
	cancel()
	<-ended
}

func TestExec_TimeoutOfItsOwn(t *testing.T) {
	f := failed(t, runs(t, 300*time.Millisecond, "help-polite"), testJob())
	if f.Type != "exec.timeout" || !contains(f.Message, "ran longer than 300ms") {
		t.Errorf("failure = %v", f)
	}
}

func TestExec_DoesNotStartWhatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	name := filepath.Join(t.TempDir(), "out")
	err := runs(t, 0, "help-copy", name)(ctx, testJob())
	if _, missing := os.Stat(name); !errors.Is(err, context.Canceled) || missing == nil {
		t.Errorf("the handler returned %v", err)
	}
}
