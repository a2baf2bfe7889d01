// Package redistest runs a real Redis for tests, with nothing in it or with the records
// of a real system.
package redistest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"redrive/internal/freeport"

	"github.com/redis/go-redis/v9"
)

// Start runs a server that keeps nothing on disk, until the end of the test, and returns
// a client of it. Without Debian's package redis-server the test is skipped; in CI it
// fails.
func Start(t *testing.T, options ...string) *redis.Client {
	t.Helper()
	return StartAt(t, FreePort(t), options...)
}

// StartAt is Start at the port of a server that has ended.
func StartAt(t *testing.T, port string, options ...string) *redis.Client {
	t.Helper()

	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is missing: .ci/prepare installs it")
		}

		t.Skip("redis-server is missing: sudo apt-get install redis-server")
	}

	args := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--logfile", "log"}
	server := exec.Command(program, append(args, options...)...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}

	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: 2, MaxRetries: -1})
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})

	for end := time.Now().Add(20 * time.Second); client.Ping(t.Context()).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("redis-server does not answer")
		}
	}

	return client
}

// FreePort is a port on which no server listens.
func FreePort(t *testing.T) string {
	t.Helper()

	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}

	return port
}

// URL is the address of a client's server.
func URL(c *redis.Client) string { return "redis://" + c.Options().Addr + "/0" }

// Load fills a server from a file of genuine records: a list of commands, or an object of
// lists and sorted sets.
func Load(t *testing.T, c *redis.Client, path ...string) {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}

	var commands [][]any
	if json.Unmarshal(text, &commands) != nil {
		commands = keysOf(t, text)
	}

	for _, command := range commands {
		for i := range command {
			if binary, ok := command[i].(map[string]any); ok {
				command[i], err = base64.StdEncoding.DecodeString(binary["b64"].(string))
				if err != nil {
					t.Fatal(err)
				}
			}
		}

		if err := c.Do(t.Context(), command...).Err(); err != nil {
			t.Fatalf("%.200v: %v", command, err)
		}
	}
}

// keysOf makes commands of an object of keys.
func keysOf(t *testing.T, text []byte) (commands [][]any) {
	t.Helper()

	var keys map[string]struct {
		LRange  []any
		Members map[string]string
	}
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}

	for key, value := range keys {
		if len(value.LRange) > 0 {
			commands = append(commands, append([]any{"RPUSH", key}, value.LRange...))
		}

		for member, score := range value.Members {
			commands = append(commands, []any{"ZADD", key, score, member})
		}
	}

	return commands
}

// Dump writes keys of a server as text: the content of each, byte for byte.
func Dump(t *testing.T, c *redis.Client, keys ...string) (text string) {
	t.Helper()

	for _, key := range keys {
		kind, err := c.Type(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}

		value := any("")
		switch kind {
		case "list":
			value, err = c.LRange(t.Context(), key, 0, -1).Result()
		case "zset":
			value, err = c.ZRange(t.Context(), key, 0, -1).Result()
		case "set":
			var members []string
			members, err = c.SMembers(t.Context(), key).Result()
			slices.Sort(members)
			value = members
		case "hash":
			value, err = c.HGetAll(t.Context(), key).Result()
		case "string":
			value, err = c.Get(t.Context(), key).Result()
		case "stream":
			var entries []redis.XMessage

			entries, err = c.XRange(t.Context(), key, "-", "+").Result()
			var values []map[string]any // without the ids, which are times
			for _, e := range entries {
				values = append(values, e.Values)
			}

			value = values
		}

		if err != nil {
			t.Fatal(err)
		}

		text += fmt.Sprintf("%s %s %q\n", key, kind, value)
	}

	return text
}
