package live

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"redrive/internal/job"
)

// watcher is the cheapest browser there can be: it reads frames and reports each
// seq that it has seen.
type watcher struct {
	conn net.Conn
	in   *bufio.Reader
}

func watch(tb testing.TB, address string) watcher {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	w := watcher{conn, bufio.NewReaderSize(conn, 512)}
	fmt.Fprintf(conn, "GET /live HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", address)
	response, err := http.ReadResponse(w.in, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		tb.Fatal(response, err)
	}
	return w
}

// seqs reports each total that comes, until the connection ends.
func (w watcher) seqs(seen func(int64)) {
	buffer := make([]byte, 0, 512)
	for {
		var head [4]byte
		if _, err := io.ReadFull(w.in, head[:2]); err != nil {
			return
		}
		size := int(head[1])
		if size == 126 {
			if _, err := io.ReadFull(w.in, head[2:]); err != nil {
				return
			}
			size = int(binary.BigEndian.Uint16(head[2:]))
		}
		buffer = slices.Grow(buffer[:0], size)[:size]
		if _, err := io.ReadFull(w.in, buffer); err != nil {
			return
		}
		_, after, _ := bytes.Cut(buffer, []byte(`"seq":`))
		end := bytes.IndexAny(after, ",}")
		if seq, err := strconv.ParseInt(string(after[:max(end, 0)]), 10, 64); err == nil {
			seen(seq)
		}
	}
}

// inUse is the memory of everything that lives.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkFanOut: one change, told to so many pages over real TCP. It reports
// when the last of them knew, also in multiples of what it takes just to write that
// often, and what each costs the server: the memory of both ends less that of as
// many ends that watch a server which does nothing.
func BenchmarkFanOut(b *testing.B) {
	for _, clients := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchmarkFanOut(b, clients) })
	}
}

func benchmarkFanOut(b *testing.B, clients int) {
	silents := make(chan net.Conn, clients)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			b.Error(err)
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		silents <- conn
	}))
	arrived := make(chan int64, clients)
	bare, hangUp := fanOut(b, silent.Listener.Addr().String(), clients, func(seq int64) { arrived <- seq })
	raw := writeAll(b, silents, clients, arrived)
	hangUp() // their descriptors are needed again
	silent.Close()

	all := &totals{}
	hub := New(all, Options{MaxPerIP: clients})
	server := httptest.NewServer(hub)
	cost, hangUp := fanOut(b, server.Listener.Addr().String(), clients, func(seq int64) { arrived <- seq })
	b.Cleanup(func() { hub.Close(); hangUp(); server.Close() })
	await(arrived, clients, 0)

	var took []time.Duration
	for b.Loop() {
		<-time.After(time.Second / 2) // a page is told at most four times a second
		begin := time.Now()
		all.commit(hub, moved(idA, job.Retryable, 1))
		await(arrived, clients, all.Snapshot().Seq)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-last-p50")
	b.ReportMetric(float64(took[len(took)/2])/float64(raw), "raw-writes-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-last-p99")
	b.ReportMetric(float64(int64(cost)-int64(bare))/float64(clients)/1024, "kB/client")
}

// writeAll is the median time in which one goroutine writes a message of the usual
// size to every connection and the last has it. It closes the connections.
func writeAll(b *testing.B, conns <-chan net.Conn, clients int, arrived <-chan int64) time.Duration {
	b.Helper()
	var all []net.Conn
	for range clients {
		conn := <-conns
		defer conn.Close()
		all = append(all, conn)
	}
	var took []time.Duration
	for seq := range int64(21) {
		begin := time.Now()
		text := fmt.Sprintf(`{"seq":%d,"pad":"%0500d"}`, seq, 0)
		frame := append([]byte{0x81, 126, byte(len(text) >> 8), byte(len(text))}, text...)
		for _, conn := range all {
			if _, err := conn.Write(frame); err != nil {
				b.Fatal(err)
			}
		}
		await(arrived, clients, seq)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// fanOut connects so many watchers. It returns the memory that it took, and what
// ends them.
func fanOut(b *testing.B, address string, clients int, seen func(int64)) (cost uint64, hangUp func()) {
	b.Helper()
	before := inUse()
	var reading sync.WaitGroup
	watchers := make([]watcher, clients)
	for i := range watchers {
		watchers[i] = watch(b, address)
		reading.Go(func() { watchers[i].seqs(seen) })
	}
	return inUse() - before, func() {
		for _, w := range watchers {
			w.conn.Close()
		}
		reading.Wait()
	}
}

// await waits until so many pages have seen a total.
func await(arrived <-chan int64, clients int, seq int64) {
	for clients > 0 {
		if got := <-arrived; got >= seq {
			clients--
		}
	}
}
