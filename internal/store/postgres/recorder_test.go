package postgres_test

import (
	"bytes"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// recorder stands between a program and its server, and reads which statements travel together.
type recorder struct {
	dsn    string
	server string

	mu       sync.Mutex
	trips    [][]string         // texts of the statements of each trip, of all connections
	examples map[string]example // of each text that was run, by the text
}

// example is a statement with the arguments of one time when it was run.
type example struct {
	types   []uint32
	formats []int16
	args    [][]byte

	settings string // the statement with which its transaction began that writes
}

func recorderTo(t *testing.T, dsn string) *recorder {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	config, err := pgconn.ParseConfig(dsn)
	check(t, err)

	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	r := &recorder{server: server, dsn: strings.Replace(dsn, server, listener.Addr().String(), 1), examples: map[string]example{}}

	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}

			go r.carry(client)
		}
	}()

	return r
}

// carry carries what a client and the server say to each other.
func (r *recorder) carry(client net.Conn) {
	defer client.Close()

	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	defer server.Close()

	go func() {
		defer client.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}

			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()

	requests := pgproto3.NewBackend(client, server)
	start, err := requests.ReceiveStartupMessage()
	if err != nil {
		return
	}

	said, err := start.Encode(nil)
	if err == nil {
		_, err = server.Write(said)
	}

	names := map[string]string{} // of statements that were prepared
	types := map[string][]uint32{}
	settings := "" // of the transaction under way
	var trip []string
	for err == nil {
		var message pgproto3.FrontendMessage
		message, err = requests.Receive()
		if err != nil {
			return
		}

		switch m := message.(type) {
		case *pgproto3.Parse:
			names[m.Name], types[m.Name] = m.Query, m.ParameterOIDs
		case *pgproto3.Bind:
			text := names[m.PreparedStatement]
			trip = append(trip, text)

			switch {
			case strings.HasPrefix(text, "SELECT set_config('lock_timeout'"):
				settings = text
			case text == "COMMIT" || text == "ROLLBACK":
				settings = ""
			}

			r.learn(text, types[m.PreparedStatement], settings, m)
		case *pgproto3.Query:
			trip = append(trip, m.String)
			r.note(&trip)
		case *pgproto3.Sync:
			r.note(&trip)
		}

		said, err = message.Encode(nil)
		if err == nil {
			_, err = server.Write(said)
		}
	}
}

// learn keeps the arguments with which a statement is run for the first time, and the settings of its
// transaction.
func (r *recorder) learn(text string, types []uint32, settings string, m *pgproto3.Bind) {
	r.mu.Lock()
	defer r.mu.Unlock()

	_, known := r.examples[text]
	if known {
		return
	}

	e := example{types: types, formats: slices.Clone(m.ParameterFormatCodes), settings: settings}
	for _, arg := range m.Parameters {
		e.args = append(e.args, bytes.Clone(arg))
	}

	r.examples[text] = e
}

// asked are the statements that were run so far.
func (r *recorder) asked() map[string]example {
	r.mu.Lock()
	defer r.mu.Unlock()

	return maps.Clone(r.examples)
}

func (r *recorder) note(trip *[]string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.trips = append(r.trips, *trip)
	*trip = nil
}

// shared finds a change of a row that many transactions share.
var shared = regexp.MustCompile(`(?:INSERT INTO|UPDATE|DELETE FROM) (groups|group_hours|group_queues|depths|counters|minutes|reasons|revision)\b`)

// faults are the trips that break a rule. Rows that are shared travel together with the commit,
// so that no transaction waits for a program while it holds them; and no transaction
// that writes sends a notice, for which it would wait for all others.
func (r *recorder) faults() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, trip := range r.trips {
		text := strings.Join(trip, ";\n")
		if strings.Contains(strings.ToLower(text), "notify") {
			all = append(all, text)
		}

		if shared.MatchString(text) && !strings.HasSuffix(text, "COMMIT") {
			all = append(all, text)
		}
	}

	return all
}
