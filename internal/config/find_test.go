package config

import (
	"strings"
	"testing"
	"time"

	"redrive/internal/retry"
)

func TestFind_TakesEveryNameThatAPersonWrites(t *testing.T) {
	c := parse(t, full+"policies:\n  patient: {use: daycry, max_attempts: 8}\n  queue: {max_attempts: 2}\n")
	tests := []struct {
		name     string
		attempts int
		strategy retry.Strategy
		initial  time.Duration
		ttr      time.Duration
	}{
		{"default", 4, retry.Exponential, 2 * time.Second, time.Minute},
		{"queue:orders", 5, retry.Exponential, 2 * time.Second, time.Minute},
		{"type:email.send", 9, retry.Linear, 2 * time.Second, 30 * time.Second},
		{"type:email.other", 4, retry.Linear, 2 * time.Second, 30 * time.Second},
		{"type:email.*", 4, retry.Linear, 2 * time.Second, 30 * time.Second},
		{"patient", 8, retry.Exponential, 5 * time.Second, 0},
		{"queue", 2, retry.Exponential, 2 * time.Second, 0},
		{"sidekiq", 26, retry.Polynomial, time.Second, 0},
	}
	for _, test := range tests {
		p, ttr, err := c.Find(test.name)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if p.MaxAttempts != test.attempts || p.Strategy != test.strategy || p.InitialInterval != test.initial || ttr != test.ttr {
			t.Errorf("%s: %d × %s from %v, ttr %v; want %d × %s from %v, ttr %v", test.name,
				p.MaxAttempts, p.Strategy, p.InitialInterval, ttr, test.attempts, test.strategy, test.initial, test.ttr)
		}
	}
}

func TestParse_KeepsTheNameOfTheDefault(t *testing.T) {
	if _, err := Parse("redrive.yaml", []byte("policies:\n  default: {max_attempts: 8}\n")); err == nil || !strings.HasPrefix(err.Error(), "redrive.yaml:2: policies.default: is reserved for the field policy") {
		t.Errorf("a policy named default: %v", err)
	}
}

func TestFind_SaysWhatThereIs(t *testing.T) {
	c := parse(t, full+"policies:\n  patient: {use: daycry}\n")
	for name, want := range map[string]string{
		"":            `there is no policy ""; available are ojs, daycry, yii2, initphp, sidekiq, patient, default, queue:NAME and type:NAME`,
		"fast":        `there is no policy "fast"`,
		"queue:order": `does not mention the queue "order": its jobs have the policy default; it mentions queue:mail, queue:orders`,
		"type:sms":    `does not mention the type "sms": its jobs have the policy of their queue; it mentions type:email.*, type:email.send`,
		"queue:":      `does not mention the queue ""`,
		"type:*":      `does not mention the type "*"`,
	} {
		if _, _, err := c.Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): %v, want %q", name, err, want)
		}
	}
	if _, _, err := Default().Find("queue:x"); err == nil || !strings.HasSuffix(err.Error(), "default") {
		t.Errorf("a configuration without queues offers some: %v", err)
	}
}
