package process_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

// notified is where systemd listens.
func notified(t *testing.T) *net.UnixConn {
	t.Helper()

	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })

	return socket
}

// isReady waits until systemd is told that a start is over.
func isReady(t *testing.T, socket *net.UnixConn) {
	t.Helper()

	if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 100)
	n, err := socket.Read(message)
	if err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("systemd was told %q, %v", message[:n], err)
	}
}

// systemd starts what depends on the dashboard once it says that it is ready.
func TestServe_TellsSystemdThatItIsReady(t *testing.T) {
	socket := notified(t)
	cmd := rig.Command(t, t.TempDir(), "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket.LocalAddr().String())
	rig.Await(t, cmd)
	isReady(t, socket)
}

// A process that stands by has started, too: other units do not wait until it takes over.
func TestServe_TellsSystemdThatItStandsBy(t *testing.T) {
	dsn, dir, socket := postgrestest.New(t), t.TempDir(), notified(t)
	rig.Start(t, dir, "--db", dsn)

	cmd := rig.Command(t, dir, "--listen", "127.0.0.1:0", "--db", dsn)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket.LocalAddr().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	isReady(t, socket)
}
