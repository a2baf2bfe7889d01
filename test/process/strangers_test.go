package process_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redrive/test/rig"
)

// attack is what strangers do at once, each kind from addresses of its own.
type attack struct {
	idle, kept int // connections that are opened, and how many of them stay open
	bodies     int // that stop before their last byte
	bodySize   int
	shapes     int // of filters
}

// attackOf is a short attack, or with REDRIVE_STRANGERS=full a whole one.
func attackOf() attack {
	if os.Getenv("REDRIVE_STRANGERS") == "full" {
		return attack{20_000, 12_500, 5_000, 1 << 20, 10_000}
	}
	return attack{1_500, 1_500, 400, 256 << 10, 600}
}

// dialer opens connections from one of this machine's addresses.
func dialer(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Minute}
}

// visitorFrom sends requests from an address.
func visitorFrom(t *testing.T, address string) *http.Client {
	transport := &http.Transport{DialContext: dialer(address).DialContext, MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Minute} // only ends a hang
}

// holder keeps connections open, the newest ones.
type holder struct {
	mu   sync.Mutex
	most int
	open []net.Conn
}

func (h *holder) hold(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open = append(h.open, conn); len(h.open) > h.most {
		h.open[0].Close()
		h.open = h.open[1:]
	}
}

func (h *holder) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.open {
		conn.Close()
	}
}

// inParallel does something n times, so many at once.
func inParallel(n, atOnce int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// shape asks for jobs with conditions that no other number has: a query of its own.
func shape(i int) string {
	var parts []string
	path := "/api/v1/jobs"
	for _, choices := range [][]string{
		{"", "/count"},
		{"state:available", "state:completed", "state:discarded", "state:scheduled", "state:retryable", "state:active", "state:cancelled"},
		{"", "queue:q"}, {"", "type:t", "type:t.*"}, {"", "attempts:>4", "attempts:<9", "attempts:5"},
		{"", "run:>4", "run:<9", "run:5"}, {"", "since:2h"}, {"", "text"}, {"", "operation:1"},
	} {
		choice := choices[i%len(choices)]
		if i /= len(choices); choice == "/count" {
			path += choice
		} else if choice != "" {
			parts = append(parts, choice)
		}
	}
	return path + "?q=" + url.QueryEscape(strings.Join(parts, " "))
}

// memory is a line of /proc/PID/status in MiB: VmRSS, or VmHWM, the most that it
// ever was.
func memory(p *rig.Process, line string) int {
	p.T.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		p.T.Skip("this system does not tell the memory of a process")
	}
	_, rest, _ := strings.Cut(string(status), line+":")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		p.T.Fatal(err)
	}
	return kib >> 10
}

// readPages reads every page again and again until ctx ends, at least once, and
// returns how many were read.
func readPages(p *rig.Process, ctx context.Context, person *http.Client) (pages int) {
	for {
		for _, page := range []string{"/", "/jobs", "/failures", "/dead-letters", "/queues", "/workers", "/operations", "/policies", "/trash", "/audit", "/access"} {
			response, err := person.Get(p.URL + page)
			if err != nil {
				p.T.Errorf("%s: %v", page, err)
				continue
			}
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if err != nil || response.StatusCode != http.StatusOK {
				p.T.Errorf("%s: %d, %v", page, response.StatusCode, err)
			}
			pages++
		}
		if ctx.Err() != nil {
			return pages
		}
	}
}

// Whatever strangers on other addresses do, a person reads every page, and the
// memory stays within its bounds: of the program as it is released in the long test.
func TestStrangers_LeaveRoomForAPerson(t *testing.T) {
	most := mostMemory
	if rig.Watched() {
		most *= 4 // the race detector remembers who used what
	}
	besiege(t, rig.Start(t, t.TempDir()), most)
}

func TestLong_StrangersLeaveRoomForAPersonInTheRelease(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "dashboard")
	if err := rig.Build(program); err != nil {
		t.Fatal(err)
	}
	besiege(t, rig.Await(t, rig.CommandOf(t, program, dir, "--listen", "127.0.0.1:0")), mostMemory)
}

// mostMemory is how many MiB the program takes at most.
const mostMemory = 300

// besiege attacks the program while a person reads its pages.
func besiege(t *testing.T, p *rig.Process, most int) {
	t.Helper()
	a := attackOf()
	for range 20 {
		p.Post(`{"type":"nobody.knows","queue":"orders","payload":{"n":1}}`)
	}
	host := strings.TrimPrefix(p.URL, "http://")
	strangers := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}
	idle, stalled := &holder{most: a.kept}, &holder{most: a.bodies}
	defer idle.close()
	defer stalled.close()
	var opened, begun, found atomic.Int64

	inParallel(a.idle, 4, func(i int) {
		if conn, err := dialer(strangers[i%len(strangers)]).Dial("tcp", host); err == nil {
			opened.Add(1)
			idle.hold(conn)
		}
	})
	ctx, over := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	attackers.Go(func() {
		head := fmt.Sprintf("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", a.bodySize)
		body := head + strings.Repeat(" ", a.bodySize-1)
		inParallel(a.bodies, 32, func(i int) {
			conn, err := dialer(strangers[i%len(strangers)]).Dial("tcp", host)
			if err != nil {
				return
			}
			stalled.hold(conn)
			if conn.SetWriteDeadline(time.Now().Add(2*time.Second)) == nil {
				if _, err := io.WriteString(conn, body); err == nil {
					begun.Add(1)
				}
			}
		})
	})
	attackers.Go(func() {
		reader := visitorFrom(t, "127.0.0.6")
		inParallel(a.shapes, 4, func(i int) {
			response, err := reader.Get(p.URL + shape(i))
			if err != nil {
				return
			}
			defer response.Body.Close()
			if _, err := io.Copy(io.Discard, response.Body); err == nil && response.StatusCode == http.StatusOK {
				found.Add(1)
			}
		})
	})
	go func() { attackers.Wait(); over() }()
	pages := readPages(p, ctx, visitorFrom(t, "127.0.0.9"))

	t.Logf("%d connections opened, %d bodies sent but for a byte, %d filters answered; %d pages read; memory %d MiB, at most %d",
		opened.Load(), begun.Load(), found.Load(), pages, memory(p, "VmRSS"), memory(p, "VmHWM"))
	if took := memory(p, "VmHWM"); took > most {
		t.Errorf("the process took %d MiB, at most %d are expected", took, most)
	}
	if opened.Load() == 0 || begun.Load() == 0 || found.Load() == 0 {
		t.Errorf("the attack was none: %d connections, %d bodies, %d filters", opened.Load(), begun.Load(), found.Load())
	}
}
