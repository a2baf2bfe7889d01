package templates_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/source"
)

// trashed is a dead letter that was discarded, of which its source has heard so much.
func trashed(state source.State, attached bool) page {
	v := sourceJobs()["job-source"]
	v.Job.DeadLetter, v.Job.Reason, v.Mirrored.Present = job.DeadLetterTrashed, retry.Manual, state == source.Asked
	v.Mirrored.Acts = []source.Act{{Kind: source.Discard, State: state, Run: 1, AskedAt: now.Add(-time.Minute)}}
	if !attached {
		v.Origin = nil
	}
	return v
}

// The page of a job says that it was deleted at its source only if it was.
func TestJob_SaysWhatItsSourceKnowsOfADiscard(t *testing.T) {
	waiting := sourceJobs()["job-source-asked"]
	waiting.Origin = nil
	for want, v := range map[string]page{
		"It was deleted at shop, so it cannot be restored.":                               trashed(source.Done, true),
		"It is deleted at shop as soon as the source answers.":                            trashed(source.Asked, true),
		"The source shop is not attached: it deletes the job when it is attached again.":  trashed(source.Begun, false),
		"It is unknown whether it was deleted at shop.":                                   trashed(source.Unknown, true),
		"The source shop was not attached, so it was not told and may still have the job": trashed(source.NotTold, true),
		"The replay waits for shop, which is not attached":                                waiting,
	} {
		if text := said(t, v); !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// said is the text of a page.
func said(t *testing.T, p page) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(render(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	return text(root)
}

// sentences is the text of a page in one line, without a blank before a stop.
func sentences(t *testing.T, p page) string {
	t.Helper()
	return strings.NewReplacer(" ,", ",", " .", ".", " :", ":").Replace(strings.Join(strings.Fields(said(t, p)), " "))
}

// The queue of a source has no worker, policy or button to pause it, and is not counted among
// those of Redrive, nor are places for it.
func TestQueues_OfASourceAreItsOwn(t *testing.T) {
	for name, wants := range map[string][]string{
		"queues-source":  {"2 queues, 14 workers,", "and 1 queue of sources", "source outlet", "of its source"},
		"queue-source":   {"source outlet", "The workers of the source outlet run the jobs of this queue, by its own rules.", "It cannot pause the queue."},
		"workers-source": {"4 queues,", "and 1 queue of sources", "source outlet"},
	} {
		shown := sentences(t, pages()[name])
		for _, want := range wants {
			if !strings.Contains(shown, want) {
				t.Errorf("%s does not say %q: %s", name, want, shown)
			}
		}
	}

	page := sentences(t, pages()["queue-source"])
	for _, no := range []string{"busy", "no worker", "first retry", "attempts, then", "Pause"} {
		if strings.Contains(page, no) {
			t.Errorf("the page of a source's queue says %q: %s", no, page)
		}
	}
}

// A list says by what it is sorted where its rows show another time.
func TestLists_SayByWhatTheyAreSorted(t *testing.T) {
	const added = "by when they were added to Redrive"
	for name, want := range map[string]bool{
		"jobs": true, "jobs-search": true, "dead-letters-search": true, "jobs-retryable": false, "dead-letters": false, "trash": false, "audit": false,
	} {
		if got := strings.Contains(said(t, pages()[name]), added); got != want {
			t.Errorf("whether %s is said to be sorted %s: %v, want %v", name, added, got, want)
		}
	}
}

// Every page says what is wrong with the sources that are out of date; that of one of them says
// it itself. What differs between them is in the overview's fixtures.
func TestOutdated_IsSaidOnEveryPage(t *testing.T) {
	for name, want := range map[string]string{
		"overview-source-away":  "legacy does not answer since 13:51:11: connect: dial tcp 10.1.2.3:5432: connection refused. Its dead letters are shown as of 13:50:11.",
		"overview-source-moved": "The URL of shop names another place than the one that its jobs are from, since 14:01:11. Its dead letters are shown as of 14:02:08.",
		"overview-sources-away": "6 sources are out of date: legacy since 13:51:11, legacy since 13:51:11, shop since 14:01:11, shop since 14:01:11 and 2 others.",
		"sources":               "legacy does not answer since 13:51:11",
	} {
		if shown := sentences(t, pages()[name]); !strings.Contains(shown, want) {
			t.Errorf("%s does not say %q: %s", name, want, shown)
		}
	}
	if shown := said(t, pages()["source-away"]); strings.Count(shown, "legacy does not answer") != 1 {
		t.Errorf("the page of a source that is away says it more than once, or not at all: %s", shown)
	}

	d := parse(t, pages()["source-away"])
	if n := len(d.with("class", "banner is-failed")); n != 1 {
		t.Errorf("the page has %d banners in the colour of the badge, want 1", n)
	}
}

// Where the source does not say when its job was enqueued, the page does not either.
func TestJob_OfASourceHasNoMadeUpEnqueueing(t *testing.T) {
	d := parse(t, pages()["job-source-silent"])
	if history := text(d.one("aria-labelledby", "h-log")); strings.Contains(history, "enqueued") {
		t.Errorf("the history says when the job was enqueued: %s", history)
	}
	if facts := strings.Join(strings.Fields(text(d.one("aria-labelledby", "h-facts"))), " "); !strings.Contains(facts, "Enqueued unknown") {
		t.Errorf("the facts say of the enqueueing: %s", facts)
	}
}
