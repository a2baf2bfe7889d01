package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redrive/internal/fault"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// notConnected checks what is said of an address with the password "hidden": by a start, and by a command that
// asks who works on the database.
func notConnected(t *testing.T, dsn, says string, refused bool) {
	t.Helper()

	_, opened := openAt(t, dsn)
	_, asked := postgres.Server{DSN: dsn}.Holder(t.Context())
	examined := postgres.Server{DSN: dsn}.Inspect(t.Context(), nil)

	for what, err := range map[string]error{"opened": opened, "asked": asked, "examined": examined} {
		if !errors.Is(err, fault.ErrUnreachable) || errors.Is(err, fault.ErrRefused) != refused || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "does not answer") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("it is %s with %v", what, err)
		}
	}
}

// A name that does not exist can be made, such as that of a container that has not started: it is waited for.
// No name server is asked for this one.
func TestConnect_SaysThatANameIsNotKnown(t *testing.T) {
	notConnected(t, "postgres://redrive:hidden@db..invalid/jobs", "the name of the host of the database jobs is not known; ", false)
	notConnected(t, "postgres://redrive:hidden@db-1..invalid,db-2..invalid/jobs", "is not known; ", false)
}

// Of several hosts, one without a name says nothing of the one that has stopped.
func TestConnect_SaysOfSeveralHostsThatNoneAnswers(t *testing.T) {
	dsn := postgrestest.New(t)
	proxy := postgrestest.NewProxy(t, dsn)
	proxy.Refuse()

	_, err := openAt(t, bothHosts(t, strings.Replace(dsn, "127.0.0.1", "db..invalid", 1), proxy.DSN))
	if !errors.Is(err, fault.ErrUnreachable) || errors.Is(err, fault.ErrRefused) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("it is opened with %v", err)
	}
}

// A certificate that is not accepted does not mend itself, nor does a server without TLS.
func TestConnect_SaysWhatIsWrongWithTLS(t *testing.T) {
	server := postgrestest.NewCluster(t)
	at := func(host string) string {
		return strings.Replace("postgres://postgres:hidden@"+server.Address()+"/postgres", "127.0.0.1", host, 1)
	}

	notConnected(t, at("127.0.0.1")+"?sslmode=require", "the server of the database postgres offers no TLS, ", true)

	authority := server.Certify(time.Now().Add(time.Hour))
	check(t, mustOpen(t, at("127.0.0.1")+"?sslmode=verify-full&sslrootcert="+authority).Close())
	notConnected(t, at("127.0.0.1")+"?sslmode=verify-full", "is signed by an authority that this machine does not trust; ", true)
	notConnected(t, at("localhost")+"?sslmode=verify-full&sslrootcert="+authority, "is for another name; ", true)

	server = postgrestest.NewCluster(t)
	authority = server.Certify(time.Now().Add(-time.Hour))
	notConnected(t, at("127.0.0.1")+"?sslmode=verify-full&sslrootcert="+authority, "has expired, or the clock of this machine is wrong; ", true)
	notConnected(t, at("127.0.0.1")+"?sslmode=verify-ca&sslrootcert="+authority, "has expired, or the clock of this machine is wrong; ", true)
}
