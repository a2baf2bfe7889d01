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
	v.Job.Letter, v.Job.Reason, v.Mirrored.Lies = job.LetterTrashed, retry.Manual, state == source.Asked
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
