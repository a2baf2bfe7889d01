package problem_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"redrive/internal/client"
	"redrive/internal/fault"
	"redrive/internal/server/problem"
	"redrive/internal/store/health"
)

// A fault of the database is told in its own words, and as one that is worth another try only if
// it is. The words of a kind stand in where the database has said none.
func TestOf_TellsTheFaultsOfTheDatabaseApart(t *testing.T) {
	var next *problem.Problem // that the dashboard answers with
	dashboard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(next.Kind.Status)
		_, _ = w.Write(next.Encode())
	}))
	defer dashboard.Close()

	caller, err := client.New(dashboard.URL)
	if err != nil {
		t.Fatal(err)
	}

	own := errors.New("as the server said")

	for _, test := range []struct {
		kind   error
		status int
		want   string // without the words of the database

		unchanged bool // clients can rely on it that nothing was changed
	}{
		{fault.ErrBusy, 503, "another process is keeping the database busy", true},
		{fault.ErrStarved, 503, "lacks memory", true},
		{fault.ErrUnreachable, 503, "cannot be reached", true},
		{fault.ErrOverloaded, 503, "cannot keep up", true},
		{fault.ErrStorageFull, 507, "the disk is full", true},
		{fault.ErrReadOnly, 503, "read-only", true},
		{fault.ErrUnsafe, 503, "not safe", true},
		{fault.ErrBroken, 503, "restart the dashboard", false},
		{fault.ErrCorrupt, 503, "restore a backup", false},
	} {
		said := problem.Of(test.kind)
		if said.Kind.Status != test.status || !strings.Contains(said.Text, test.want) {
			t.Errorf("%v: %d %s", test.kind, said.Kind.Status, said.Text)
		}

		inWords := problem.Of(&health.Fault{Kind: test.kind, Words: "in the words of the database", Err: own})
		next = said
		if failed := caller.Call(t.Context(), "GET", "/jobs", nil, nil); client.Unchanged(failed) != test.unchanged {
			t.Errorf("%v: a client takes %v for unchanged: %t", test.kind, failed, !test.unchanged)
		}

		// ErrOverloaded is the store's own, and no database has words for it.
		if test.kind != fault.ErrOverloaded && !strings.Contains(inWords.Text, "in the words") {
			t.Errorf("%v in words of its own: %s", test.kind, inWords.Text)
		}
	}
}
