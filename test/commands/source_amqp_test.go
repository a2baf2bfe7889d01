package commands_test

import (
	"os"
	"strings"
	"testing"

	"redrive/internal/source/amqpsource/amqptest"
	"redrive/test/rig"
)

func TestMain(m *testing.M) {
	code := m.Run()
	amqptest.Stop()
	os.Exit(code)
}

// Long, because a RabbitMQ takes a while to start; sources in databases have the same test.
func TestLong_SourceRabbitMQIsCheckedAndDiscovered(t *testing.T) {
	b := amqptest.Open(t)
	b.Load("..", "..", "internal", "source", "testdata", "initphp-queue", "amqp-dump.json")
	b.Queue("empty.failed", nil)
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "sources: {shop: {preset: initphp-amqp, url: '"+b.URL()+"', queues: [orders.failed, q2.failed], allow: [replay]}}\n")
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"check", 0, []string{
			"shop: InitPHP Queue (RabbitMQ)\n", "  Sees      2 dead letters\n", "orders urn:babel:orders:created GatewayTimeout: Payment gateway timeout",
			"the queue orders.failed, messages: 1", "  Does      replay, when", "  Refuses   discard, because allow", "  Hazard    A look takes",
		}},
		{"discover " + b.URL() + "?queues=orders.failed,q5.failed", 0, []string{
			"initphp-amqp: InitPHP", "  Sees      7 dead letters\n", "    preset: initphp-amqp\n    url_env: NAME_URL\n    queues: [orders.failed, q5.failed]\n", "rabbitmq: ",
		}},
		{"discover " + b.URL(), 2, []string{"name the dead-letter queues in the URL"}},
		{"discover " + b.URL() + "?queues=empty.failed", 1, []string{"no preset fits", "Nothing found for: babelqueue-amqp, celery-amqp, initphp-amqp, rabbitmq."}},
		{"discover " + b.URL() + "?queues=nowhere", 1, []string{"no queue 'nowhere'"}},
	} {
		code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, append([]string{"source"}, strings.Fields(tt.args)...)...))
		if code != tt.code {
			t.Errorf("%s: exit %d: %s", tt.args, code, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s does not say %q:\n%s%s", tt.args, want, stdout, stderr)
			}
		}
		if strings.Contains(stdout, "babelqueue-amqp: ") || strings.Contains(stdout, "celery-amqp: ") {
			t.Errorf("%s takes the queues for those of another system", tt.args)
		}
	}
	if len(b.Take("orders.failed")) != 1 || len(b.Take("q5.failed")) != 6 {
		t.Error("the queues have changed")
	}
}
