package handler

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"redrive/internal/resource"
)

// attributes give a program a process group of its own, and let it die with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// seesMarks reports whether the environments of processes can be read.
func seesMarks() bool {
	_, err := os.ReadFile("/proc/self/environ")
	return err == nil
}

// marked lists the processes that carry a mark that begins so. With a NUL at the
// end it is that one mark. The error is what this process lacks for looking.
func marked(begins string) (found []leftover, _ error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, lacking(err)
	}
	defer proc.Close()

	names, _ := proc.Readdirnames(-1) // as many as could be read
	var blank []string
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}

		environ, err := os.ReadFile("/proc/" + name + "/environ")
		if lacking(err) != nil {
			return found, err
		}

		// One that executes another file just now has none, and is looked at again.
		if len(environ) == 0 && !errors.Is(err, fs.ErrPermission) {
			blank = append(blank, name)
		} else if bytes.Contains(environ, []byte(begins)) {
			found = addMarked(found, name, begins)
		}
	}

	for _, name := range blank {
		if bytes.Contains(environOf(name), []byte(begins)) {
			found = addMarked(found, name, begins)
		}
	}

	return found, nil
}

// lacking returns the error if it says that this process has run out of
// something. Any other error is about the process that was looked at: it has
// ended, or belongs to another user.
func lacking(err error) error {
	if resource.Shortage(err) == nil {
		return nil
	}
	return err
}

// environOf is the environment of a process, also when its first thread has
// ended and others go on. A process that begins to execute another file has none
// for a moment; one that executes nothing any more has none at all.
func environOf(pid string) []byte {
	environ, _ := os.ReadFile("/proc/" + pid + "/environ") // an error is like an empty one

	threads := "/proc/" + pid + "/task/"
	var dir syscall.Stat_t // it has a link for each thread, beside two of its own
	if len(environ) > 0 || syscall.Stat(threads, &dir) != nil || dir.Nlink <= 3 {
		return environ
	}

	entries, _ := os.ReadDir(threads) // none: it has ended
	for _, thread := range entries {
		environ, _ = os.ReadFile(threads + thread.Name() + "/environ")
		if len(environ) > 0 {
			return environ
		}
	}

	return nil
}

// addMarked adds a process if it carries the mark. That is read when the process
// is found: its number can be given to another one before.
func addMarked(found []leftover, name, begins string) []leftover {
	pid, err := strconv.Atoi(name)
	if err != nil || pid == os.Getpid() {
		return found
	}

	process, err := os.FindProcess(pid)
	if err != nil {
		return found
	}

	for line := range bytes.SplitAfterSeq(environOf(name), []byte{0}) {
		if bytes.HasPrefix(line, []byte(begins)) {
			return append(found, leftover{pid, process, string(bytes.TrimSuffix(line, []byte{0}))})
		}
	}

	_ = process.Release()

	return found
}
