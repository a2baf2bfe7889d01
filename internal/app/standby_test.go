package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/config"
	"redrive/internal/fault"
	"redrive/internal/store"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/internal/usage"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// standingBy is a standby of a database, and its log.
func standingBy(t *testing.T, dsn string) (*standby, *bytes.Buffer) {
	t.Helper()

	log := new(bytes.Buffer)
	a := &App{Parts: Parts{Listen: "127.0.0.1:0", DB: dsn, Config: config.Default(), Log: slog.New(slog.NewTextHandler(log, nil))}}

	s, err := a.standBy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)

	return s, log
}

// ready is what a standby answers under /readyz.
func ready(s *standby) string {
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))

	return answer.Body.String()
}

// Once the process that it waited for works no more, a standby says that it takes over, until that
// succeeds or fails.
func TestStandby_SaysThatItTakesOver(t *testing.T) {
	s, log := standingBy(t, postgrestest.New(t))
	held := &health.LockedError{Path: "jobs", Holder: "web-1:4711"}
	waits := "standby: another process works on the database jobs, and this one stands by\n"

	s.tell(held)
	if got := ready(s); got != waits {
		t.Errorf("first it says %q", got)
	}

	err := s.untilFree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := ready(s); got != "standby: no other process works on the database any more, and this one takes over\n" {
		t.Errorf("then it says %q", got)
	}

	s.tell(held) // it was in time after all
	if got := ready(s); got != waits {
		t.Errorf("in the end it says %q", got)
	}
	if n := strings.Count(log.String(), "Standing by"); n != 1 {
		t.Errorf("its log says %d times that it stands by: %s", n, log)
	}
}

// A standby that cannot take over, because the database cannot be used, keeps saying so.
func TestStandby_SaysWhatKeepsItFromTakingOver(t *testing.T) {
	s, _ := standingBy(t, postgrestest.New(t))
	s.tell(&health.Fault{Kind: fault.ErrReadOnly, Words: "the database jobs cannot be written", Err: errors.New("a replica")})

	err := s.untilFree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := ready(s); !strings.HasPrefix(got, "read_only: the database jobs cannot be written; that began at 2") {
		t.Errorf("it says %q", got)
	}
}

// A standby is no process of which an alert says that it runs no jobs, and one that is missing can be told.
func TestStandby_HasAMetric(t *testing.T) {
	s, _ := standingBy(t, postgrestest.New(t))

	for n, why := range map[string]error{
		"1": &health.LockedError{Path: "jobs", Holder: "web-1:4711"},
		"0": &health.Fault{Kind: fault.ErrReadOnly, Words: "the database jobs cannot be written", Err: errors.New("a replica")},
	} {
		s.tell(why)

		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/redrive/metrics", http.NoBody))

		body := answer.Body.String()
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" ||
			!strings.HasPrefix(body, "# HELP redrive_standby ") || !strings.HasSuffix(body, "\nredrive_standby "+n+"\n") {
			t.Errorf("it answers %d, %v: %s", answer.Code, answer.Header(), body)
		}
	}
}

// answer is the code with which a server refuses.
type answer string

func (a answer) Error() string    { return "refused with " + string(a) }
func (a answer) SQLState() string { return string(a) }

// The log tells of another refusal by the server, also where the words for everyone are the same.
func TestStandby_LogsAnotherRefusal(t *testing.T) {
	s, log := standingBy(t, postgrestest.New(t))
	for _, code := range []answer{"28P01", "28P01", "3D000"} {
		s.tell(&health.Fault{Kind: fault.ErrRefused, Words: "the server refuses this program", Err: code})
	}

	for _, code := range []string{"28P01", "3D000"} {
		if n := strings.Count(log.String(), "refused with "+code); n != 1 {
			t.Errorf("the log tells %d times of %s: %s", n, code, log)
		}
	}
}

// A start that others could reach without a login is refused before it stands by: not when it is needed.
func TestStandby_IsRefusedWhereItCouldNotWork(t *testing.T) {
	dsn := postgrestest.New(t)
	works, err := store.Open(t.Context(), store.Options{Database: location.Of(dsn).Database(false)})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	stands := make(chan error, 10)
	start := func() error {
		_, err := Start(ctx, Parts{
			Listen: "0.0.0.0:0", DB: dsn, Config: config.Default(), Log: slog.New(slog.DiscardHandler),
			Standby: func(why error) { stands <- why; cancel() },
		})
		return err
	}

	err = start()
	if !errors.As(err, new(usage.Error)) || !strings.Contains(err.Error(), "no login is configured") || len(stands) > 0 {
		t.Errorf("the start says %v", err)
	}

	postgrestest.Query(t, dsn, `INSERT INTO tokens (id, hash, name, role, created_at, created_by, expires_at) VALUES ('t', 'h', 't', 'admin', 0, '', 0)`)

	err = start()
	if !errors.Is(err, context.Canceled) || len(stands) == 0 {
		t.Errorf("with a login, the start says %v", err)
	}

	err = works.Close()
	if err != nil {
		t.Error(err)
	}
}

// That the connection of its watch ends badly, as it does when its server has died, does not keep a
// process from work: the log tells it.
func TestStandby_EndsAlthoughItsWatchEndsBadly(t *testing.T) {
	server := postgrestest.NewCluster(t)
	dsn := server.Encrypt("postgres", "require")

	worked, err := store.Open(t.Context(), store.Options{Database: location.Of(dsn).Database(false)})
	if err != nil {
		t.Fatal(err)
	}
	err = worked.Close()
	if err != nil {
		t.Fatal(err)
	}

	s, log := standingBy(t, dsn)
	_, err = s.watch.Holder(context.Background())
	if err != nil {
		t.Fatal(err)
	}

	server.Stop(syscall.SIGQUIT)
	s.close()

	if !strings.Contains(log.String(), "What a standby leaves behind did not end in order.") {
		t.Errorf("the log says: %s", log)
	}
}
