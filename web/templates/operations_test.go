package templates_test

import (
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/web/templates/operationpage"
)

// What an aborted operation left is called by one name in its meter, tabs and rows.
func TestOperation_AbortedHasOneWordForTheRest(t *testing.T) {
	said := text(parse(t, pages()["operation-aborted"]).root)
	if strings.Contains(said, "remaining") || strings.Count(said, "not run") < 3 {
		t.Errorf("the page says\n%s", said)
	}
}

// The end that a list adds to its filter is said once, as the time of the page; one that
// a person typed is a part of the scope.
func TestOperation_SaysOnceUntilWhenItsScopeIs(t *testing.T) {
	v := pages()["operation-aborted"].(operationpage.View)
	v.Filter.To = time.Date(2026, 3, 12, 13, 39, 17, 128_150_000, time.UTC)
	if said := text(parse(t, v).root); !strings.Contains(said, "dead letters of queue email · as of 13:39:17") {
		t.Errorf("with the time of a page, it says\n%s", said)
	}
	v.Filter.To = v.Filter.To.Truncate(time.Second)
	if said := text(parse(t, v).root); !strings.Contains(said, "before 2026-03-12 13:39:17 UTC · as of 13:57:11") {
		t.Errorf("with a time that a person typed, it says\n%s", said)
	}
}

// The log says once who paused an operation; it says after that why it paused on its own.
func TestOperation_LogSaysOnceWhoPaused(t *testing.T) {
	v := pages()["operation-aborted"].(operationpage.View)
	v.Log = []audit.Entry{
		{At: v.Now, Actor: audit.Actor{Name: "sam"}, Action: "operation.pause", After: "paused by sam"},
		{At: v.Now, Actor: audit.Actor{Name: "the canary"}, Action: "operation.pause", After: "the canary of 5 is enqueued"},
	}
	page := parse(t, v)
	if said := text(page.one("aria-labelledby", "h-log")); strings.Count(said, "sam") != 1 || !strings.Contains(said, "the canary · the canary of 5 is enqueued") {
		t.Errorf("the log says %q", said)
	}
}
