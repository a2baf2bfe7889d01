package process_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/test/rig"
)

// What a service sends after its answer is quoted by net/http in a log of its own.
func TestLog_LibrariesTellNoSecrets(t *testing.T) {
	const canary = "canary5c20e7"
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	go func() {
		for {
			conn, err := service.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 204 No Content\r\n\r\n{\"user\": \"ana\", \"password\": %q}", canary)
			}
		}
	}()
	dir := t.TempDir()
	config := fmt.Sprintf("handlers: {t: {http: {url: \"http://%s/\"}}}", service.Addr())
	if err := os.WriteFile(filepath.Join(dir, "redrive.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := rig.Start(t, dir, "--log-level", "debug")
	if p.Post(`{"type": "t"}`) == "" {
		t.Fatal("the job was not taken")
	}
	p.Says("Unsolicited response")
	if said := p.Stderr.String(); strings.Contains(said, canary) || !strings.Contains(said, "level=DEBUG msg=\"A library logged a message.\"") {
		t.Errorf("the log is %s", said)
	}
}
