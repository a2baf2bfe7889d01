package policypage

import (
	"time"

	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// load is one row of the herd: a load over time.
type load struct {
	class, name, note string
	peak              string
	top               string // what the full height stands for
	bars              []templates.Rect
}

// loads draws a herd without jitter and with it.
func loads(p retry.Policy, h retry.Herd) []load {
	most, buckets := max(h.Together.Peak, h.Spread.Peak, 1), bucketsOf(h)
	together := loadOf("is-dead", "No jitter", h.Together, buckets, most)
	spread := loadOf("is-retryable", "×"+format.Jitter(h.Jitter), h.Spread, buckets, most)
	together.note, spread.note = "if every delay were exact", "this policy"
	if !p.Jitter.On() {
		together.note, spread.note = "this policy", "if it had the jitter of the Open Job Spec"
		spread.class = "is-completed"
	}
	return []load{together, spread}
}

// bucketsOf is how many stretches of time a herd fills.
func bucketsOf(h retry.Herd) int {
	return max(minBuckets, len(h.Together.Buckets), len(h.Spread.Buckets))
}

func loadOf(class, name string, l retry.Lane, buckets, most int) load {
	drawn := load{class: class, name: name, peak: format.Number(l.Peak), top: format.Number(most) + " per s"}
	pitch := 100 / float64(buckets)
	for i, n := range l.Buckets {
		if n == 0 {
			continue
		}
		height := max(1.2, (loadFloor-loadTop)*float64(n)/float64(most))
		drawn.bars = append(drawn.bars, templates.Rect{
			X: format.Percent(float64(i) * pitch), Width: format.Percent(min(pitch*0.82, 2.4)),
			Y: format.Tenth(loadFloor - height), Height: format.Tenth(height),
		})
	}
	return drawn
}

// herdTick is a time below a herd.
type herdTick struct{ x, class, word string }

func herdTicks(h retry.Herd) []herdTick {
	length := time.Duration(bucketsOf(h)) * h.Bucket
	all := []herdTick{{"0%", "", "failure"}}
	for at, step := time.Duration(0), stepOf(length, 5); at <= length-step; {
		at += step
		if x := 100 * float64(at) / float64(length); x > 8 && x < 95 { // not under the first, not cut off
			all = append(all, herdTick{format.Percent(x), "mid", format.Duration(at)})
		}
	}
	return all
}

// herdNote says what the herd is, and how far it was followed.
func herdNote(h retry.Herd) string {
	note := format.Number(h.Jobs) + " jobs fail in the same second and keep failing: retries per second"
	if h.Cut {
		note += ", of the first " + format.Number(h.Retries) + " retries"
	}
	if h.Bucket.Seconds() > 1 {
		note += "; each bar is the busiest second of " + format.Duration(h.Bucket)
	}
	return note
}

const (
	loadFloor, loadTop = 76.0, 12.0
	minBuckets         = 10
)
