package browser_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"redrive/internal/app"
	"redrive/internal/app/apptest"
	"redrive/internal/engine"
	"redrive/internal/job"
)

// provider is a handler that captures payments on eu2 only, and remembers what
// it was given.
type provider struct {
	mu  sync.Mutex
	got []string
}

func (p *provider) capture(_ context.Context, j job.Job) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, string(j.Payload))
	if strings.Contains(string(j.Payload), "eu2") {
		return nil
	}
	return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "upstream.unavailable", Message: "paylane is down"}}
}

// A payment fails; a user writes another provider into its payload, whose token they
// never see, looks at the difference, and replays. The handler gets the token.
func TestBrowser_EditsAndReplaysAroundASecret(t *testing.T) {
	t.Parallel()
	const secret, body = "hush-4711", `{"type":"payments.capture","payload":{"provider":"paylane","card":{"token":"hush-4711","last4":"4242"}},"policy":{"max_attempts":1}}`
	p := &provider{}
	parts := apptest.Parts(t)
	parts.Handlers = func(string) (engine.Handler, bool) { return p.capture, true }
	a, err := app.Start(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	response, err := http.Post(a.URL()+"/api/v1/jobs", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	b := openBrowser(t)
	noSecret := func(where string) {
		t.Helper()
		if eval[bool](b, `document.documentElement.outerHTML.includes("`+secret+`")`) {
			t.Errorf("%s shows the secret", where)
		}
	}
	page := a.URL() + response.Header.Get("Location")[len("/api/v1"):]
	b.run(chromedp.Navigate(page))
	b.wait("the job is dead", `document.querySelector("h1 ~ [data-cell=state]").innerText.includes("dead letter")`)
	noSecret("the job")
	b.run(chromedp.Navigate(page + "/replay"))
	noSecret("the editor")
	eval[bool](b, `(a => { a.value = a.value.replace("paylane", "eu2"); return true })(document.querySelector("textarea"))`)
	b.run(chromedp.Click(chromedp.CSS(`button[value="check"]`)))
	b.arrive("the difference is there", `document.querySelector(".diff .add")?.innerText.includes("eu2") && document.querySelector("textarea").value.includes("eu2")`)
	noSecret("the difference")
	b.run(chromedp.Click(chromedp.CSS(`form button.primary`)))
	b.arrive("the job's page says what was changed", `document.querySelector("#run-2")?.innerText.includes("Changed since run 1")`)
	noSecret("the job with two runs")
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := `{"provider":"eu2","card":{"token":"` + secret + `","last4":"4242"}}`; len(p.got) != 2 || p.got[1] != want {
		t.Errorf("the handler got %q, want last %s", p.got, want)
	}
	b.calm()
}
