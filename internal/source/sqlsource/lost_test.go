package sqlsource_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
)

// cutter is a proxy that loses one commit: it ends the connection before the server has
// received the statement, or when the server has answered it.
type cutter struct {
	net.Listener
	server string
	armed  atomic.Bool // for the next commit
	reach  bool        // that commit reaches the server
	all    sync.WaitGroup
}

// cut starts a proxy before the server of a URL, and returns the URL with its address.
func cut(t *testing.T, address string, reach bool) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(address)
	check(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	c := &cutter{Listener: l, server: u.Host, reach: reach}
	c.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			c.all.Go(func() { c.serve(client) })
		}
	})
	t.Cleanup(func() {
		check(t, l.Close())
		c.all.Wait()
	})
	u.Host = l.Addr().String()
	return c, u.String()
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	var lost atomic.Bool
	c.all.Go(func() { // the answers, but the one to the commit
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || lost.Load() {
				_, _ = client.Close(), server.Close()
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		// As PostgreSQL's and MySQL's messages have it: a payload can have the word, too.
		whole := bytes.HasSuffix(buffer[:n], []byte("commit\x00")) || bytes.HasSuffix(buffer[:n], []byte("\x03COMMIT"))
		if whole && c.armed.CompareAndSwap(true, false) {
			if !c.reach {
				return
			}
			lost.Store(true)
		}
		if _, err := io.Copy(server, bytes.NewReader(buffer[:n])); err != nil {
			return
		}
	}
}

// A replay whose commit was lost on the way has taken place or not, and the source tells:
// PostgreSQL how the transaction ended, and the others by where the job is.
func TestFind_TellsWhetherAReplayWhoseAnswerWasLostTookPlace(t *testing.T) {
	tellsWhatWasLost(t, systemOf("laravel", "postgres"), systemOf("laravel", "mysql"), systemOf("daycry", "mysql"))
}

func TestLong_FindTellsOfEverySystemWhetherALostReplayTookPlace(t *testing.T) {
	tellsWhatWasLost(t, systems...)
}

func tellsWhatWasLost(t *testing.T, all ...system) {
	for _, s := range all {
		if s.engine == "sqlite" { // it has no connection that could be lost
			continue
		}
		t.Run(s.String(), func(t *testing.T) { s.tellsWhatWasLost(t, s.load(t)) })
	}
}

func (s system) tellsWhatWasLost(t *testing.T, address string) {
	t.Helper()
	for _, reach := range []bool{false, true} {
		if reach && s.preset == "yii2-db" && s.engine == "mysql" {
			continue // the row in its queue has nothing that the record had
		}
		proxy, through := cut(t, address, reach)
		o := s.origin(t, through)
		a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Record: s.fit(t, o)}
		proxy.armed.Store(true)
		results, err := o.Act(t.Context(), []source.Act{a})
		if proxy.armed.Load() {
			t.Fatalf("nothing was lost: %+v, %v", results, err)
		}

		// The one who asked knows from PostgreSQL. Everyone else finds out.
		want := source.Asked
		if reach {
			want = source.Done
		}
		if s.engine == "postgres" && (len(results) != 1 || results[0].State != want) {
			t.Errorf("reached %t: %+v, %v", reach, results, err)
		}
		if s.engine != "postgres" && (len(results) != 0 || err == nil) {
			t.Errorf("reached %t: %+v, %v", reach, results, err)
		}
		if s.preset == "yii2-db" {
			continue
		}
		found, err := s.origin(t, address).Find(t.Context(), []source.Act{a})
		check(t, err)
		if found[0].State != want {
			t.Errorf("reached %t: found %+v", reach, found[0])
		}
	}
}

// With a queue in Redis, the mark of the push tells, also when a worker has run the job.
func TestWork_FindKnowsAPushWhoseAnswerWasLost(t *testing.T) {
	for _, s := range []system{twoStores[1], twoStores[2]} {
		t.Run(s.engine, func(t *testing.T) {
			address := s.load(t)
			queue := redistest.Start(t)
			proxy, through := cut(t, address, true)
			o := s.attachWork(t, through, redistest.URL(queue))
			a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Record: s.fit(t, o)}
			a.Queue += "@shop" // as the ledger has it
			proxy.armed.Store(true)
			if _, err := o.Act(t.Context(), []source.Act{a}); proxy.armed.Load() || s.engine == "mysql" && err == nil {
				t.Fatalf("nothing was lost: %v", err)
			}
			check(t, queue.Del(t.Context(), "shop_database_queues:orders", "shop_database_queues:mail").Err())
			found, err := s.attachWork(t, address, redistest.URL(queue)).Find(t.Context(), []source.Act{a})
			check(t, err)
			if found[0].State != source.Done {
				t.Errorf("%+v", found[0])
			}
		})
	}
}

// A user who may not read the queue is told that the record is gone, as far as that goes.
func TestFind_WithoutTheRightToReadTheQueueIsGone(t *testing.T) {
	for _, engine := range []string{"postgres", "mysql"} {
		t.Run(engine, func(t *testing.T) {
			s := systemOf("laravel", engine)
			address := s.load(t)
			o := s.origin(t, address)
			r := s.fit(t, o)
			act(t, o, source.Replay, source.Once, r)
			found, err := s.origin(t, onlyFailedJobs(t, engine, address)).Find(t.Context(), []source.Act{{Kind: source.Replay, Record: r}})
			check(t, err)
			if found[0].State != source.Gone {
				t.Errorf("%+v", found[0])
			}
		})
	}
}

// onlyFailedJobs is the URL with a user who can read nothing but the failed jobs.
func onlyFailedJobs(t *testing.T, engine, address string) string {
	t.Helper()
	name := fmt.Sprintf("narrow%d", databases.Add(1))
	if engine == "postgres" {
		execute(t, address, "CREATE ROLE "+name+" LOGIN; GRANT SELECT ON failed_jobs TO "+name)
		return strings.Replace(address, "postgres@", name+"@", 1)
	}
	execute(t, address, "CREATE USER "+name+"@'%'; GRANT SELECT ON failed_jobs TO "+name+"@'%'")
	return strings.Replace(address, "root@", name+"@", 1)
}
