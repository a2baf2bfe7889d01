package postgrestest

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Distant returns the address by which a database is reached over a network on which everything
// takes so long in each direction. Nothing overtakes, and what is sent meanwhile does not wait for
// what is under way.
func Distant(tb testing.TB, dsn string, each time.Duration) (far string) {
	tb.Helper()

	config, err := pgconn.ParseConfig(dsn)
	check(tb, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(tb, err)
	tb.Cleanup(func() { _ = listener.Close() })

	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))

	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}

			go connect(client, server, each)
		}
	}()

	return strings.Replace(dsn, server, listener.Addr().String(), 1)
}

// connect carries what a client and a server say, until one of them ends the connection.
func connect(client net.Conn, address string, each time.Duration) {
	defer client.Close()

	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}

	var both sync.WaitGroup
	both.Go(func() { carry(server, client, each) })
	both.Go(func() { carry(client, server, each) })
	both.Wait()
}

// sent is what was sent at once.
type sent struct {
	text    []byte
	arrives time.Time
}

// carry delivers everything after a time, and closes both ends after the last of it.
func carry(to, from net.Conn, each time.Duration) {
	under := make(chan sent, 1000)

	go func() {
		defer close(under)

		for {
			buffer := make([]byte, 1<<16)
			n, err := from.Read(buffer)
			if err != nil {
				return
			}

			under <- sent{buffer[:n], time.Now().Add(each)}
		}
	}()

	for one := range under {
		waitUntil(one.arrives)

		_, err := to.Write(one.text)
		if err != nil {
			break
		}
	}

	_ = to.Close()
	_ = from.Close()
	for range under { // so that the reader ends
	}
}
