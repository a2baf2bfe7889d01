package redissource_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
)

// later is when the replays of these tests shall run.
var later = time.UnixMilli(1795400000250)

// changed are the systems of which a replay can be another one, with what a delay and an
// edit leave in their keys. The record is the first one that can be replayed.
var changed = []struct {
	preset, lineage string
	score           float64 // of a delay, in the first of the keys
	keys            []string
	payload         string // empty: it cannot be edited
}{
	{"sidekiq", "84aa00c0b4f43ea65f51a423", 1795400000.25, []string{"schedule", "queue:orders", "queues"}, `[7]`},
	{"asynq", "order-1", 1795400001, []string{"asynq:{orders}:scheduled", "asynq:{orders}:pending", "asynq:{orders}:t:order-1"}, `{"n":7}`},
	{"rq", "orders/order-2", 1795400001, []string{"rq:scheduled:orders", "rq:queue:orders", "rq:failed:orders", "rq:job:order-2"}, ""},
	{"bullmq", "orders/1", 1795400000250 * 4096, []string{"bull:orders:delayed", "bull:orders:wait", "bull:orders:marker", "bull:orders:1"}, `{"n":7}`},
	{"initphp-redis", "orders/29bb2cf0-b735-4da2-91bf-11d3fe2a7c87", 1795400001, []string{"orders:delayed", "orders"}, `{"n":7}`},
	{"babelqueue-redis", "orders/3497fa84-e5bd-4a59-bd78-39ffeda38c7c", 0, []string{"orders"}, `{"n":7}`},
	{"daycry-redis", "", 1795400001, []string{"jobs:orders-delayed", "jobs:orders-waiting"}, `{"n":7}`},
	{"yii2-redis", "", 1795400001, []string{"queue.delayed", "queue.waiting", "queue.messages"}, ""},
}

// newChanged is a bench with the record of a row.
func newChanged(t *testing.T, name, lineage string) (*bench, source.Record) {
	file := genuine[name]
	if name == "yii2-redis" {
		file = yiiFile
	}
	b := newBench(t, name, file)
	if name == "yii2-redis" {
		keepFailed(b, "1")
	}
	if lineage == "" {
		return b, b.all(100)[0]
	}
	return b, b.record(lineage)
}

func TestReplay_WaitsForATimeToCome(t *testing.T) {
	for _, tt := range changed {
		t.Run(tt.preset, func(t *testing.T) {
			b, r := newChanged(t, tt.preset, tt.lineage)
			a := act(source.Replay, source.Once, r)
			a.Due = later
			if tt.score == 0 {
				b.does(a, source.Refused)
				return
			}
			b.does(a, source.Done)
			at := strconv.FormatFloat(tt.score, 'f', -1, 64)
			if n := b.redis.ZCount(t.Context(), tt.keys[0], at, at).Val(); n != 1 {
				t.Errorf("%d jobs are due at %s", n, at)
			}
			b.golden(tt.preset+"-later", steady(redistest.Dump(t, b.redis, tt.keys...)))
		})
	}
}

func TestReplay_HasAnotherPayload(t *testing.T) {
	for _, tt := range changed {
		t.Run(tt.preset, func(t *testing.T) {
			b, r := newChanged(t, tt.preset, tt.lineage)
			a := act(source.Replay, source.Once, r)
			for _, wrong := range []string{`{"n":`, ""} {
				a.Payload = []byte(wrong)
				b.does(a, source.Refused)
			}
			if tt.payload == "" {
				a.Payload = []byte("{}")
				b.does(a, source.Refused)
				return
			}
			a.Payload = []byte(tt.payload)
			b.does(a, source.Done)
			b.golden(tt.preset+"-edited", steady(redistest.Dump(t, b.redis, tt.keys...)))
		})
	}
}

// TestReplay_AsANewMessage has another id, so that a guard against repeats lets it pass.
func TestReplay_AsANewMessage(t *testing.T) {
	for preset, id := range map[string]string{
		"initphp-redis": "29bb2cf0-b735-4da2-91bf-11d3fe2a7c87", "babelqueue-redis": "3497fa84-e5bd-4a59-bd78-39ffeda38c7c",
	} {
		b, r := newChanged(t, preset, "orders/"+id)
		b.does(act(source.Replay, source.New, r), source.Done)
		got := b.redis.LRange(t.Context(), "orders", -1, -1).Val()[0]
		if strings.Contains(got, id) || !strings.Contains(got, `"meta":{"id":"`) || strings.Contains(got, "dead_letter") {
			t.Errorf("%s: %s", preset, got)
		}
	}
	b, r := newChanged(t, "sidekiq", "84aa00c0b4f43ea65f51a423")
	b.does(act(source.Replay, source.New, r), source.Refused)
}

// steady takes out what another run of the test has otherwise: when a job was enqueued,
// and how long it waits.
var moving = regexp.MustCompile(`(enqueued_at\\?":|"delay":|"pending_since":)"?[0-9.]+"?([^-0-9.])`)

func steady(text string) string { return moving.ReplaceAllString(text, "$1 NOW$2") }
