package templates_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/web/templates"
	"redrive/web/templates/jobpage"
	"redrive/web/templates/queuepage"
)

// chart is an hour with an outage at its end, in a calm day.
func chart(of string) *templates.Chart {
	c := &templates.Chart{Of: of, Hour: make([]stats.Totals, 60), Day: make([]stats.Totals, 96)}
	for i := range c.Hour {
		c.Hour[i] = stats.Totals{Succeeded: int64(20 + i*7%11)}
		if i > 47 {
			c.Hour[i] = stats.Totals{Succeeded: 3, Failed: 24, Requeued: 15, FailedPermanently: 9}
		}
	}
	for i := range 40 {
		c.Day[95-i] = stats.Totals{Succeeded: int64(300 + i*37%110), Failed: 4, Requeued: 4}
	}
	c.Day[95] = stats.Totals{Succeeded: 36, Failed: 288, Requeued: 180, FailedPermanently: 108, Replayed: 12}
	return c
}

func queueView(f templates.Frame) queuepage.View {
	policy := retry.Default()
	q := queueInfos()[0]
	return queuepage.View{
		Frame: f, Queue: q, Configured: true, Chart: chart("the queue " + q.Name),
		Config:  templates.QueueConfig{Workers: 10, Running: 3, Policy: policy, DeadLetters: true},
		Failing: failing(6),
		Groups: []failures.Group{{
			Type: "payments.capture", Cause: fingerprint.Cause{Fingerprint: "00aa11bb22cc33dd", Class: "upstream.unavailable", Message: "POST <url>: <n> Service Unavailable"},
			State: failures.Open, Dead: 1204, Retrying: 318, LastSeen: now.Add(-9 * time.Second),
		}},
		Held: []queues.Held{{Queue: q.Name, Type: "loyalty.points.expire", Count: 2}},
	}
}

func queueStates(all map[string]page) {
	all["queue"] = queueView(frame("queues", "payments"))
	v := queueView(frame("queues", "payments"))
	v.Queue.PausedAt, v.Queue.PausedBy = now.Add(-time.Hour), "ana"
	v.Chart = &templates.Chart{Of: "the queue payments", Slow: true}
	v.Slow = true
	all["queue-paused"] = v
	v = queueView(frame("queues", "payments"))
	v.Config, v.Configured, v.Held = templates.QueueConfig{Policy: retry.Default()}, false, nil
	all["queue-no-worker"] = v
	v = queuepage.View{Frame: fresh("queues", "new"), Queue: queues.Info{Name: "new"}, Config: templates.QueueConfig{Workers: 2, Policy: retry.Default()}, Configured: true}
	v.Chart = &templates.Chart{Of: "the queue new", Hour: make([]stats.Totals, 60), Day: make([]stats.Totals, 96)}
	all["queue-fresh"] = v
	v = queueView(frame("queues", "orders@outlet"))
	v.Queue = queue("orders@outlet", 2, stats.Depths{"returned": 3, "dead_letter": 288})
	v.Config, v.Configured, v.Held = templates.QueueConfig{Policy: retry.Default()}, false, nil
	all["queue-source"] = v
	list := jobs(frame("jobs", "Jobs"))
	list.Filter = filter.Filter{Queue: "payments", Type: "payments.*"}
	list.Chart = chart("payments.* in the queue payments")
	all["jobs-chart"] = list
}

func TestQueue_SaysHowItStands(t *testing.T) {
	d := parse(t, pages()["queue"])
	for _, want := range []string{"3 of 10 busy", "stored in Redrive", "upstream.unavailable", "loyalty.points.expire", "2 jobs wait"} {
		if !strings.Contains(text(d.root), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if to := value(parse(t, pages()["queue-paused"]).with("data-act", "flip")[0], "action"); !strings.HasSuffix(to, "/resume") {
		t.Errorf("the button of a paused queue leads to %s", to)
	}
	parse(t, pages()["queue-no-worker"]).says("aria-label", "No worker", "This queue has no worker.")
}

// Every bar of a chart is also in its table.
func TestChart_HasATableOfTheSame(t *testing.T) {
	d := parse(t, pages()["queue"])
	figures := d.elements("figure")
	if len(figures) != 2 {
		t.Fatalf("%d figures, want an hour and a day", len(figures))
	}
	for i, want := range []int{60, 40} {
		bars, rows := map[string]bool{}, 0
		for n := range figures[i].Descendants() {
			if n.Type == html.ElementNode && n.Data == "path" {
				for _, bar := range regexp.MustCompile(`M(\d+) 0v[1-9]`).FindAllStringSubmatch(value(n, "d"), -1) {
					bars[bar[1]] = true
				}
			}
			if n.Type == html.ElementNode && n.Data == "tr" {
				rows++
			}
		}
		if len(bars) != want || rows != want+1 {
			t.Errorf("figure %d has %d bars and %d rows, want %d and its heading", i, len(bars), rows, want)
		}
	}
	d.says("class", "scroll", "13:51:00 3 24 15 9 0")
}

// recentPage has jobs of every outcome beside it.
func recentPage() jobpage.View {
	v := captured().page()
	for i, s := range []job.Status{job.StatusDeadLetter, job.Status(job.Active), job.Status(job.Completed), job.Status(job.Retryable), job.Status(job.Available)} {
		j := failureOf(i, s)
		v.Recent = append(v.Recent, j)
	}
	return v
}

func failureOf(n int, s job.Status) job.Job {
	j := failure(6*n, s)
	j.StartedAt = j.ChangedAt.Add(-time.Duration(n+1) * time.Second)
	return j
}

func TestJob_DrawsTheNewestOfItsType(t *testing.T) {
	d := parse(t, recentPage())
	panel := d.one("aria-labelledby", "h-recent")
	if !strings.Contains(text(panel), "1 succeeded, 2 failed, 2 not finished") {
		t.Errorf("it says %s", text(panel))
	}
	marks, x := 0, []string{}
	for n := range panel.Descendants() {
		if n.Type == html.ElementNode && n.Data == "rect" {
			if value(n, "y") == "30" {
				marks++
			} else {
				x = append(x, value(n, "x"))
			}
		}
	}
	if marks != 2 || len(x) != 5 || x[0] != "98.33%" || x[4] != "91.67%" {
		t.Errorf("%d marks of failure, bars at %v; want 2, and the newest right", marks, x)
	}
}

// The row of a queue has as many lines when it runs as when it is paused, so that Pause moves
// no other row.
func TestQueues_PauseAddsNoLineToARow(t *testing.T) {
	d := doc{parse(t, pages()["queues"]).root}
	paused := 0
	for _, cell := range d.all("th.at-lead") {
		lines := cell.all("span.one")
		if len(lines) != 1 || lines[0].FirstChild == nil {
			t.Errorf("%q has %d lines below the name, want one", cell.text(), len(lines))
		}
		if strings.Contains(cell.text(), " by ") {
			paused++
		}
	}
	if paused == 0 {
		t.Error("no queue is paused")
	}
}

// What only jobs of a source can be is said of the queue of a source alone.
func TestQueue_OfOursHasNoStatesOfSources(t *testing.T) {
	for name, want := range map[string]bool{"queue": false, "queue-paused": false, "queue-source": true} {
		said := text(parse(t, pages()[name]).root)
		if got := strings.Contains(said, "Returning"); got != want {
			t.Errorf("%s tells of jobs on the way to a source: %t", name, got)
		}
	}
}
