package server

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/store"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// What keeps the server of the database from cleaning up is on every page and in a metric, and
// open pages are drawn again when it comes and goes.
func TestHindrance_IsSaidWhileItLasts(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	dsn := postgrestest.New(t)
	h := startOn(t, watched(t, dsn))
	said := h.server().Notices()

	session, err := pgconn.Connect(t.Context(), dsn+"&application_name=report")
	check(err)
	_, err = session.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs`).ReadAll()
	check(err)

	// The page and the metric follow the same look.
	eventually(t, "the page names it", func() bool {
		return strings.Contains(h.get("/queues").want(t, http.StatusOK).body, "(application report, user postgres, from 127.0.0.1, idle in transaction)")
	})

	if h.server().Notices() == said {
		t.Error("open pages are not drawn again")
	}

	held := regexp.MustCompile(`redrive_database_cleanup_held_seconds\{kind="session"\} [0-9.e-]*[1-9]`)
	if got := h.exposition("redrive_database_cleanup_held_seconds"); !held.MatchString(got) || !strings.Contains(got, `{kind="slot"} 0`) {
		t.Errorf("the metrics say %s", got)
	}

	check(session.Close(context.Background()))
	eventually(t, "the page no longer names it", func() bool {
		return !strings.Contains(h.get("/queues").want(t, http.StatusOK).body, "application report")
	})
}

// watched opens a database that is looked at all the time, and tells of everything at once.
func watched(t *testing.T, dsn string) *store.Store {
	t.Helper()

	every, lasting := postgres.LookEvery, postgres.Lasting
	postgres.LookEvery, postgres.Lasting = time.Millisecond, 0
	defer func() { postgres.LookEvery, postgres.Lasting = every, lasting }()

	s, err := store.Open(t.Context(), store.Options{Database: postgres.Server{DSN: dsn}})
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func TestHindrance_IsNoneWhileAllIsWell(t *testing.T) {
	h := start(t)
	for _, kind := range []string{"session", "slot", "prepared"} {
		if got := h.exposition("redrive_database_cleanup_held_seconds"); !strings.Contains(got, `{kind="`+kind+"\"} 0\n") {
			t.Errorf("the metrics say %s", got)
		}
	}
}
