package handler_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/freeport"
	"redrive/internal/handler"
	"redrive/internal/httpclient"
	"redrive/internal/job"
)

// documented is the worker that docs/handlers.md shows under a heading.
func documented(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n### "+heading+"\n")
	code := regexp.MustCompile("(?s)```[a-z]+\n(.*?)```").FindStringSubmatch(after)
	if !found || code == nil {
		t.Fatalf("docs/handlers.md has no worker under %s", heading)
	}
	return code[1]
}

// freePort is a port on which no server listens.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// startWorker runs a documented worker until the test ends, and returns its address
// once it answers. PORT in the command is the port, FILE the worker.
func startWorker(t *testing.T, heading, file string, command ...string) (url string) {
	t.Helper()
	port, path := freePort(t), filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(documented(t, heading), "9000", port)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.NewReplacer("PORT", port, "FILE", path).Replace(strings.Join(command[1:], "\n")), "\n")
	ctx, cancel := context.WithCancel(context.Background())
	worker := exec.CommandContext(ctx, command[0], args...)
	worker.Env = append(os.Environ(), "EMAIL_SECRET=between us")
	var said strings.Builder
	worker.Stdout, worker.Stderr = &said, &said
	worker.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run starts a program of its own
	worker.Cancel = func() error { return syscall.Kill(-worker.Process.Pid, syscall.SIGKILL) }
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := worker.Wait(); err == nil {
			t.Errorf("the worker ended by itself:\n%s", said.String())
		}
	})
	url = "http://127.0.0.1:" + port + "/"
	awaitAnswer(t, url)
	return url
}

// awaitAnswer returns when a server answers at an address.
func awaitAnswer(t *testing.T, url string) {
	t.Helper()
	over := time.After(3 * time.Minute)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if answer, err := http.Post(url, "application/json", strings.NewReader("{}")); err == nil {
			if err := answer.Body.Close(); err != nil {
				t.Error(err)
			}
			tick.Stop()
			return
		}
		select {
		case <-over:
			t.Fatal("the worker does not answer")
		case <-tick.C:
		}
	}
}

// signatureOf is the signature of a worker's secret.
func signatureOf(stamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte("between us"))
	mac.Write([]byte(stamp + "." + string(body)))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// A worker takes what is signed with its secret, now, and nothing else.
func TestWorkers_OfTheDocumentVerifyTheSignature(t *testing.T) {
	for _, test := range []struct {
		heading, file string
		probe         []string // succeeds where the worker can run
		command       []string
	}{
		{"PHP", "worker.php", []string{"php", "-v"}, []string{"php", "-S", "127.0.0.1:PORT", "FILE"}},
		{"Python", "worker.py", []string{"python3", "-V"}, []string{"python3", "FILE"}},
		{"Node", "worker.js", []string{"node", "-v"}, []string{"node", "FILE"}},
		{"Go", "worker.go", []string{"go", "version"}, []string{"go", "run", "FILE"}},
		{"Ruby", "worker.rb", []string{"ruby", "-rwebrick", "-e", "1"}, []string{"ruby", "FILE"}},
	} {
		t.Run(test.heading, func(t *testing.T) {
			t.Parallel()
			if err := exec.CommandContext(t.Context(), test.probe[0], test.probe[1:]...).Run(); err != nil {
				t.Skipf("%s cannot run here: %v", strings.Join(test.probe, " "), err)
			}
			url := startWorker(t, test.heading, test.file, test.command...)
			run := func(secret string) error {
				config := handler.HTTP{URL: url, Secret: httpclient.NewSecret(secret), Timeout: time.Minute}
				return build(t, handler.Config{HTTP: &config})(t.Context(), testJob())
			}
			if err := run("between us"); err != nil {
				t.Errorf("signed with its secret: %v", err)
			}
			var f *job.Failure
			for name, secret := range map[string]string{"signed with another secret": "of another", "not signed": ""} {
				if err := run(secret); !errors.As(err, &f) || f.Type != "http.401" {
					t.Errorf("%s: %v", name, err)
				}
			}
			old := httpclient.NewSecret("1767225600")
			config := handler.HTTP{URL: url, Timeout: time.Minute, Headers: map[string]httpclient.Secret{
				"Redrive-Timestamp": old, "Redrive-Signature": httpclient.NewSecret(signatureOf(old.Reveal(), testJob().Payload)),
			}}
			if err := build(t, handler.Config{HTTP: &config})(t.Context(), testJob()); !errors.As(err, &f) || f.Type != "http.401" {
				t.Errorf("signed long ago: %v", err)
			}
		})
	}
}

// The program in the document takes a job with a receiver, and gives up another.
func TestWorkers_OfTheDocumentEndAsTheySay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "send-email")
	if err := os.WriteFile(path, []byte(documented(t, "Shell")), 0o700); err != nil {
		t.Fatal(err)
	}
	h := build(t, handler.Config{Exec: &handler.Exec{Command: []string{path}}})
	if err := h(t.Context(), testJob()); err != nil {
		t.Error(err)
	}
	j := testJob()
	j.Payload = []byte(`{}`)
	var f *job.Failure
	if err := h(t.Context(), j); !errors.As(err, &f) || f.Type != "exec.exit_65" || f.Message != "no recipient" {
		t.Errorf("without a receiver: %v", err)
	}
}
