package process_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"redrive/test/rig"
)

// systemd starts what depends on the dashboard once it says that it is ready.
func TestServe_TellsSystemdThatItIsReady(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	cmd := rig.Command(t, t.TempDir(), "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+name)
	rig.Await(t, cmd)
	if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 100)
	n, err := socket.Read(message)
	if err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("systemd was told %q, %v", message[:n], err)
	}
}
