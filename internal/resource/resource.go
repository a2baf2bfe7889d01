// Package resource knows what this process may take of the machine, and tells when
// it has run out of something.
//
// An error of a handler that comes from this process or machine and not from the
// service or the program that it calls is a [shortage.Error]. The system says so by
// an error number, which most errors carry along; those of name lookups keep only
// its text, or lose it, so these are decided by a look at what there is.
//
// Not every lack can be seen. A program that a job starts reports its own lacks as
// failures of the job. The kernel may kill a program or this process when memory
// ends, and the Go runtime ends this process when it is given no further thread.
package resource

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"redrive/internal/shortage"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Shortage returns what this process or machine had run out of when an error of a
// dial or of the start of a program came, or nil when the error is another's.
func Shortage(err error) *shortage.Error {
	if of := lacking(err); of != "" {
		return &shortage.Error{Of: of, Err: err}
	}
	return nil
}

func lacking(err error) shortage.Resource {
	is := func(numbers ...error) bool {
		return slices.ContainsFunc(numbers, func(number error) bool { return errors.Is(err, number) })
	}

	// EAGAIN and EADDRNOTAVAIL mean something else of other calls.
	switch {
	case err == nil:
	case is(syscall.EMFILE, syscall.ENFILE), lookedUpWithout(err):
		return shortage.Descriptors
	case is(syscall.ENOMEM, syscall.ENOBUFS):
		return shortage.Memory
	case is(syscall.EAGAIN) && forked(err):
		return shortage.Processes
	case is(syscall.EADDRNOTAVAIL) && dialed(err):
		return shortage.Ports
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return shortage.Disk
	}

	return ""
}

// lookedUpWithout reports whether a name could not be looked up for lack of a
// descriptor. Such an error keeps no number, and where the system's own resolver
// was asked not even the text.
func lookedUpWithout(err error) bool {
	lookup := new(net.DNSError)
	if !errors.As(err, &lookup) {
		return false
	}

	return strings.Contains(lookup.Err, syscall.EMFILE.Error()) || Probe(shortage.Descriptors) != nil
}

// forked reports whether an error is of the start of a program.
func forked(err error) bool {
	start := new(fs.PathError)
	return errors.As(err, &start) && start.Op == "fork/exec"
}

// dialed reports whether an error is of a connection for which a port was to be
// found. Where there is no IPv6, its addresses always give the same number.
func dialed(err error) bool {
	dial := new(net.OpError)
	if !errors.As(err, &dial) || dial.Op != "dial" {
		return false
	}

	to, ok := dial.Addr.(*net.TCPAddr)

	return ok && to.IP.To4() != nil
}

const (
	enough      = 16 // descriptors: what a program or a request needs while it starts
	probeWithin = time.Second
)

// Probe returns an error while there is nothing of a resource. What cannot be found
// out so is taken for there: the next job finds out.
func Probe(of shortage.Resource) error {
	switch of {
	case shortage.Descriptors:
		return openFiles(enough)
	case shortage.Processes, shortage.Memory:
		return startProgram()
	}

	return nil
}

// openFiles opens files and closes them again.
func openFiles(n int) error {
	for range n {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer f.Close()
	}

	return nil
}

// startProgram starts a program that does nothing, where there is one.
func startProgram() error {
	ctx, cancel := context.WithTimeout(context.Background(), probeWithin)
	defer cancel()

	err := exec.CommandContext(ctx, "/bin/true").Run()
	if Shortage(err) != nil {
		return err
	}

	return nil
}

// Prepare loads what the standard library loads when it is first needed and
// would, without a descriptor at that moment, take for absent from then on: the
// certificates that the machine trusts.
func Prepare() error {
	_, err := x509.SystemCertPool()
	return err
}
