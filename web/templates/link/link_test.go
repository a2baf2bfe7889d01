package link

import (
	"net/url"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// An address has its parameters as package url writes them.
func TestList_IsWrittenAsURLValuesAre(t *testing.T) {
	at := time.Date(2026, 3, 12, 14, 2, 11, 5000, time.FixedZone("", 3600))
	f := filter.Filter{
		Status: job.StatusDeadLetter, Queue: "a&b", Type: "email.*", Error: "50 %+", Reason: retry.Expired, Sort: filter.Oldest,
		From: at, To: at.Add(time.Hour), Text: `"ä" ?#`, Attempts: filter.Span{Min: 3}, Group: "12", Operation: 7,
	}
	values := url.Values{"after": {"x/y="}}
	for _, name := range []string{"state", "queue", "type", "error", "reason", "sort", "from", "to"} {
		values.Set(name, f.Value(name))
	}
	values.Set("q", `group:12 attempts:>=3 operation:7 "\"ä\" ?#"`)
	if got, want := string(listAddress("/jobs", f, "x/y=")), "/jobs?"+values.Encode(); got != want {
		t.Errorf("the address is\n%s, want\n%s", got, want)
	}
	if got := listAddress("/jobs", filter.Filter{}, ""); got != "/jobs" {
		t.Errorf("the address of everything is %s", got)
	}
}

func TestLinks_StayInsideWhateverTheNames(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{string(Job("a/../b?x#y")), "/jobs/a%2F..%2Fb%3Fx%23y"},
		{string(QueueAction("//evil", "pause")), "/queues/%2F%2Fevil/pause"},
		{string(Jobs(filter.Filter{Type: "a&b=c", Error: "ü"}, "")), "/jobs?error=%C3%BC&type=a%26b%3Dc"},
		{string(Jobs(filter.Filter{}, "")), "/jobs"},
	} {
		if test.got != test.want {
			t.Errorf("link %q, want %q", test.got, test.want)
		}
	}
}
