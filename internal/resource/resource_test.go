package resource_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"redrive/internal/resource"
	"redrive/internal/shortage"
)

func TestShortage_TellsFaultsOfThisMachineFromOthers(t *testing.T) {
	dial := func(to net.IP, number syscall.Errno) error {
		return &url.Error{Op: "Post", URL: "http://service/", Err: &net.OpError{
			Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: to, Port: 80}, Err: os.NewSyscallError("connect", number),
		}}
	}
	start := func(number syscall.Errno) error {
		return &fs.PathError{Op: "fork/exec", Path: "/usr/bin/tool", Err: number}
	}
	here, there := net.IPv4(127, 0, 0, 1), net.IPv6loopback
	tests := []struct {
		name string
		err  error
		want shortage.Resource
	}{
		{"nothing", nil, ""},
		{"no descriptor for a connection", dial(here, syscall.EMFILE), shortage.Descriptors},
		{"no descriptor in the whole system", dial(here, syscall.ENFILE), shortage.Descriptors},
		{"no descriptor for a pipe", os.NewSyscallError("pipe2", syscall.EMFILE), shortage.Descriptors},
		{"no descriptor for a program", start(syscall.EMFILE), shortage.Descriptors},
		{"no descriptor for the lookup of a name", &net.OpError{Op: "dial", Err: &net.DNSError{
			Err: "dial udp 127.0.0.53:53: socket: too many open files", Name: "service", IsTemporary: true,
		}}, shortage.Descriptors},
		{"no process", start(syscall.EAGAIN), shortage.Processes},
		{"no memory for a process", start(syscall.ENOMEM), shortage.Memory},
		{"no memory for a connection", dial(here, syscall.ENOBUFS), shortage.Memory},
		{"no port", dial(here, syscall.EADDRNOTAVAIL), shortage.Ports},
		{"no room on the disk", &fs.PathError{Op: "write", Path: "/tmp/x", Err: syscall.ENOSPC}, shortage.Disk},
		{"no room left for this user", &fs.PathError{Op: "write", Path: "/tmp/x", Err: syscall.EDQUOT}, shortage.Disk},

		{"a service that is down", dial(here, syscall.ECONNREFUSED), ""},
		{"a network that is away", dial(here, syscall.ENETUNREACH), ""},
		{"an address of IPv6 where there is none", dial(there, syscall.EADDRNOTAVAIL), ""},
		{"a name that does not exist", &net.DNSError{Err: "no such host", Name: "service", IsNotFound: true}, ""},
		{"a program that does not exist", start(syscall.ENOENT), ""},
		{"a program that may not be run", start(syscall.EACCES), ""},
		{"an answer that takes too long", os.ErrDeadlineExceeded, ""},
		{"a full pipe", &fs.PathError{Op: "write", Path: "|1", Err: syscall.EAGAIN}, ""},
		{"the end of a context", context.Canceled, ""},
		{"a text that only sounds so", errors.New("too many open files"), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.err
			if err != nil {
				err = fmt.Errorf("call: %w", err)
			}
			short := resource.Shortage(err)
			switch {
			case short == nil && test.want != "":
				t.Errorf("no shortage, want one of %s", test.want)
			case short != nil && (short.Of != test.want || !errors.Is(short, err) || short.Of.Lack() == ""):
				t.Errorf("shortage of %q: %v, want %q", short.Of, short, test.want)
			}
		})
	}
}

func TestProbe_FindsEverythingThere(t *testing.T) {
	for _, of := range shortage.Resources() {
		if err := resource.Probe(of); err != nil {
			t.Errorf("%s: %v", of, err)
		}
	}
}

func TestDivide_LeavesEveryoneAShare(t *testing.T) {
	tests := []struct {
		limit, wanted, visitors, executions int
	}{
		{1 << 20, 12_000, 12_000, 103_652},
		{20_000, 12_000, 12_000, 794},
		{4096, 12_000, 2693, 134},
		{1024, 12_000, 645, 32},
		{1024, 100, 100, 86},
		{160, 12_000, 69, 3},
		{10, 12_000, 1, 1},
	}
	for _, test := range tests {
		s := resource.Divide(test.limit, test.wanted)
		if s.Visitors != test.visitors || s.Executions != test.executions {
			t.Errorf("of %d descriptors, visitors have %d and executions %d; want %d and %d",
				test.limit, s.Visitors, s.Executions, test.visitors, test.executions)
		}
	}
}
