package handler

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
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
// end it is that one mark. Zombies carry none.
func marked(begins string) (found []leftover) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil // seesMarks said so before
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // as many as could be read
	var blank []string                // among them those that just begin to execute a file: their new environment is not there yet
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if environ, err := environOf(name); err == nil && len(environ) == 0 {
			blank = append(blank, name)
		} else if bytes.Contains(environ, []byte(begins)) {
			found = hold(found, name, begins)
		}
	}
	for _, name := range blank {
		found = hold(found, name, begins)
	}
	return found
}

func environOf(pid string) ([]byte, error) { return os.ReadFile("/proc/" + pid + "/environ") }

// hold adds a process if it carries the mark. That is read when the process
// itself is held: its number can be given to another one before.
func hold(found []leftover, name, begins string) []leftover {
	pid, err := strconv.Atoi(name)
	if err != nil || pid == os.Getpid() {
		return found
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return found
	}
	environ, _ := environOf(name) // of a process that has ended: none
	for line := range bytes.SplitAfterSeq(environ, []byte{0}) {
		if bytes.HasPrefix(line, []byte(begins)) {
			return append(found, leftover{process, string(bytes.TrimSuffix(line, []byte{0}))})
		}
	}
	_ = process.Release()
	return found
}
