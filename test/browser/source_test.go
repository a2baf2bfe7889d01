package browser_test

import (
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"redrive/internal/source/redissource/redistest"
	"redrive/internal/store/databasetest"
	"redrive/test/rig"
)

// outletOf is the database of the outlet of the demo that runs in a directory.
func outletOf(t *testing.T, dir string) *sql.DB {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "redrive-demo-*", "outlet.db"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the demo has the outlets %v, %v", found, err)
	}
	return rig.OpenBeside(t, found[0])
}

// untilGone waits until a job neither waits at the outlet nor is dead there.
func untilGone(t *testing.T, db *sql.DB, uuid string) {
	t.Helper()
	const query = `SELECT (SELECT count(*) FROM jobs WHERE instr(payload, ?1) > 0) + (SELECT count(*) FROM failed_jobs WHERE uuid = ?1)`
	late := time.Now().Add(3 * time.Minute)
	for n := -1; n != 0; {
		if err := db.QueryRowContext(t.Context(), query, uuid).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != 0 && time.Now().After(late) {
			t.Fatalf("the outlet has %s in %d places", uuid, n)
		}
	}
}

// uuidOf is what Laravel calls a job.
func uuidOf(t *testing.T, url, id string) string {
	t.Helper()
	return rig.Get[struct {
		Job struct{ Payload struct{ UUID string } }
	}](t, url+"/api/v1/jobs/"+id).Job.Payload.UUID
}

// The demo's outlet is a queue of Laravel that Redrive does not own. Its failures arrive
// and are one group; a replay fails again as run 2 while the warehouse is away; after the
// repair it succeeds there, and Redrive says only what it knows; a discard deletes the
// row; and the page of the source has all of it in its ledger.
func TestSource_FromItsFailuresToARepairedQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := startDemoIn(t, dir, shortestHistory)
	outlet := outletOf(t, dir)
	b := openBrowser(t)
	first := 0
	rig.UntilSource(t, url, "outlet", "everything was read", func(s rig.ShownSource) bool { first = s.Dead(); return s.Ready && first > 10 })
	rig.UntilSource(t, url, "outlet", "failures arrive", func(s rig.ShownSource) bool { return s.Dead() > first })

	b.run(chromedp.Navigate(url + `/failures?type=App%5CJobs%5CReserveStock`))
	b.run(chromedp.Click(chromedp.CSS(`tbody th a`)), chromedp.WaitVisible(chromedp.CSS(".crumbs")))
	for _, want := range []string{`App\Warehouse\Unavailable`, `app/Jobs/ReserveStock.php`, "orders@outlet"} {
		if got := b.text("main"); !strings.Contains(got, want) {
			t.Errorf("the group's page does not say %q:\n%s", want, got)
		}
	}

	ids := rig.DeadLettersOf(t, url, "outlet")
	replayed, discarded := ids[0], ids[1]
	uuid := uuidOf(t, url, replayed)
	b.run(chromedp.Navigate(url + "/jobs/" + replayed))
	b.wait("the page is live", isLive)
	b.run(chromedp.Click(chromedp.CSS(`.head form[data-act="replay"] button`)))
	b.wait("it comes back as run 2", `document.querySelector("#run-2")?.innerText.includes("failed") &&
		document.querySelector(".head .badge").innerText.includes("dead letter")`)

	b.fix("warehouse")
	b.run(chromedp.Click(chromedp.CSS(`.head form[data-act="replay"] button`)))
	b.wait("the outlet has it", `document.querySelector("main").innerText.includes("Handed to outlet")`)
	untilGone(t, outlet, uuid)

	gone := uuidOf(t, url, discarded)
	b.run(chromedp.Navigate(url + "/jobs/" + discarded))
	b.wait("the page is live", isLive)
	b.run(chromedp.Click(chromedp.CSS(`.head form[data-act="discard"] button`)))
	b.wait("it is deleted there", `document.querySelector("main").innerText.includes("It was deleted at outlet")`)
	untilGone(t, outlet, gone)
	if eval[bool](b, `document.querySelector("[data-toast]") !== null`) {
		t.Errorf("a discard that cannot be undone offers %q", b.text("[data-toast]"))
	}

	polled := time.Now()
	rig.UntilSource(t, url, "outlet", "another look", func(s rig.ShownSource) bool { return s.Polled.After(polled) })
	b.run(chromedp.Navigate(url + "/sources"))
	b.run(chromedp.Click(chromedp.CSS(`tbody th a`)), chromedp.WaitVisible(chromedp.CSS("#h-acts")))
	if got := eval[string](b, `[...document.querySelectorAll("section:has(#h-acts) tbody .badge")].map((e) => e.innerText.trim()).join(" ")`); got != "deleted replayed replayed" {
		t.Errorf("the ledger says %q", got)
	}
	if got := b.text("main"); !strings.Contains(got, "current") || !strings.Contains(got, "Replayed, not back") {
		t.Errorf("the source's page says:\n%s", got)
	}
	if d := rig.Get[rig.Detail](t, url+"/api/v1/jobs/"+replayed); d.Job.Run != 3 || d.Job.State != "returned" {
		t.Errorf("the job is %s in run %s, want returned in run 3", d.Job.State, strconv.Itoa(d.Job.Run))
	}
	b.calm()
}

// rowSaysNoAttempts replays a job of a source in its row of the list. How often the new run
// was tried is unknown, and the row says so as the server draws it.
func rowSaysNoAttempts(t *testing.T, b *browser, url, id string) {
	t.Helper()
	b.run(chromedp.Navigate(url + "/jobs?state=dead_letter"))
	b.wait("the list is live", isLive)
	row := `document.querySelector('tr[data-job="` + id + `"]')`
	attempts := row + `.querySelector('[data-cell="attempts"]')`
	if got := eval[string](b, attempts+`.innerText.trim()`); !strings.Contains(got, "/") {
		t.Errorf("before its replay the row says %q of attempts", got)
	}

	eval[chromedp.Void](b, row+`.querySelector('form[data-act="replay"] button').click()`)
	b.wait("the row shows the new run", row+`.dataset.run === "2" && `+row+`.classList.contains("gone")`)
	b.wait("the row says where the job is, in its state and in the answer to the click", `["state", "acts"].every((cell) =>
		`+row+`.querySelector('[data-cell="' + cell + '"] :is(.badge, .answer)').textContent.includes("at shop"))`)
	if got := eval[string](b, attempts+`.innerText.trim()`); got != "–" {
		t.Errorf("after its replay the row says %q of attempts", got)
	}
	if eval[bool](b, attempts+`.querySelector(".pips") !== null`) {
		t.Error("after its replay the row draws attempts")
	}
}

// startWithShop starts a dashboard whose source shop is a Sidekiq with three dead jobs, all of
// which it has read. goAway ends the Redis of the source, and comeBack starts it again with
// what was in it.
func startWithShop(t *testing.T) (p *rig.Process, goAway func() (comeBack func())) {
	t.Helper()
	client := redistest.Start(t)
	redistest.Load(t, client, filepath.Join("..", "..", "internal", "source", "testdata", "sidekiq", "redis-commands.json"))
	_, port, err := net.SplitHostPort(client.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}

	p = newHome(t, "sources: {shop: {preset: sidekiq, url: '"+redistest.URL(client)+"', allow: [replay], every: 1s}}").start()
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 3 })

	return p, func() func() {
		folder := client.ConfigGet(t.Context(), "dir").Val()["dir"]
		if err := client.Save(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		client.ShutdownNoSave(t.Context()) // a server that ends does not answer

		return func() { redistest.StartAt(t, port, "--dir", folder) }
	}
}

// While the overview is open, it tells that a source has gone away: in a banner, beside the
// entry of the navigation, and where it counts dead letters. All of that goes when the source
// is back.
func TestSource_OverviewTellsLiveThatOneIsAway(t *testing.T) {
	t.Parallel()
	p, goAway := startWithShop(t)
	b := openBrowser(t)
	b.run(chromedp.Navigate(p.URL))
	b.wait("the page is live", isLive)
	const told = `[
		document.querySelector("#notices [data-outdated]")?.innerText.includes("shop does not answer since") ?? false,
		document.querySelector('nav.side [data-section="sources"]').innerText.includes("1"),
		document.querySelector("section:has(#h-dlq)").innerText.includes("Incomplete: shop may have more."),
	]`
	if eval[bool](b, told+`.some((is) => is)`) {
		t.Errorf("the overview says of a source that answers that it does not:\n%s", b.text("body"))
	}

	page := rig.OpenLive(t, p.URL)
	comeBack := goAway()
	rig.UntilRedrawn(t, page) // and not only when a page is drawn again because of its age
	b.wait("the overview tells that the source is away", told+`.every((is) => is)`)
	if got := b.text("#notices"); !strings.Contains(got, "Its dead letters are shown as of") {
		t.Errorf("the banner says %q", got)
	}

	comeBack()
	rig.UntilRedrawn(t, page)
	b.wait("the overview tells that the source is back", `!`+told+`.some((is) => is)`)
	b.calm()
}

// A row says of a job of which it is unknown whether its source has it what the server said,
// also when the page was told of the job since.
func TestSource_ALiveRowKeepsADoubt(t *testing.T) {
	t.Parallel()
	home := newHome(t, rig.AttachedShop(t, t.TempDir(), "shop", []rig.FailedJob{{
		UUID: "71d9e4b0-7f0e-4a6c-9a57-1f0d7d1c0001", Connection: "database", Queue: "orders", Exception: "App\\Declined: no",
		Payload: `{"uuid":"71d9e4b0-7f0e-4a6c-9a57-1f0d7d1c0001","displayName":"App\\Jobs\\Charge","maxTries":1,"attempts":1}`,
	}}))
	p := home.start()
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 1 })
	id := rig.DeadLettersOf(t, p.URL, "shop")[0]
	rig.ActAtSource(t, p.URL, "shop", id, "replay")
	p.Stop(os.Interrupt)
	databasetest.Run(t, home.db, `UPDATE jobs SET unbegun = 1 WHERE state = 'returned'`)

	p = home.start()
	b := openBrowser(t)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		window.heard = 0;
		window.WebSocket = class extends WebSocket {
			constructor(...address) {
				super(...address);
				this.addEventListener("message", ({ data }) => { if (String(data).includes('"jobs":[{"id":"` + id + `"')) heard++; });
			}
		};`})
	b.run(chromedp.Navigate(p.URL + "/jobs?state=returned"))
	b.wait("the page has heard of the job", `heard > 0`)
	eval[chromedp.Void](b, `new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))`)
	if got := b.text(`tr[data-job="` + id + `"] [data-cell="state"]`); got != "unknown" {
		t.Errorf("the row says %q", got)
	}
	b.calm()
}

// A source goes away and comes back. Meanwhile its page says since when, its jobs are
// shown as they were, and a replay waits; afterwards it is carried out.
func TestSource_GoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	p, goAway := startWithShop(t)
	b := openBrowser(t)
	comeBack := goAway()
	rig.UntilSource(t, p.URL, "shop", "it is away", func(s rig.ShownSource) bool { return s.Problem != "" })
	b.run(chromedp.Navigate(p.URL + "/sources/shop"))
	for _, want := range []string{"no answer", "shop does not answer.", "It last answered", "Its rows say what was known then.", "3 dead jobs"} {
		if got := b.text("main"); !strings.Contains(got, want) {
			t.Errorf("the page of a source that is away does not say %q:\n%s", want, got)
		}
	}
	b.run(chromedp.Navigate(p.URL + "/jobs/" + rig.DeadLettersOf(t, p.URL, "shop")[0]))
	b.wait("the page is live", isLive)
	b.run(chromedp.Click(chromedp.CSS(`.head form[data-act="replay"]:last-of-type button`)))
	b.wait("the replay waits", `document.querySelector("main").innerText.includes("The replay is on its way to shop")`)

	comeBack()
	p.Stderr.Await(t, "A source answers again.")
	b.wait("the replay was carried out", `document.querySelector("main").innerText.includes("Handed to shop")`)
	b.run(chromedp.Navigate(p.URL + "/sources/shop"))
	if got := b.text("main"); !strings.Contains(got, "current") || strings.Contains(got, "does not answer") {
		t.Errorf("the page of a source that is back says:\n%s", got)
	}
	rowSaysNoAttempts(t, b, p.URL, rig.DeadLettersOf(t, p.URL, "shop")[0])
	b.calm()
}
