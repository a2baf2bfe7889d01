package redact

import (
	"fmt"
	"strings"
	"testing"
)

// large is a payload of one mebibyte, of the things that payloads are made of.
func large() []byte {
	var b strings.Builder
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, `{"order_id":%d,"customer":{"email":"c%d@example.org","fullName":"Ann B. %d"},"token_count":3,"access_token":"t-%d","note":"sent to bob: ok, at 12:30","lines":[1,2.5,true]},`, i, i, i, i)
	}
	return []byte(strings.TrimSuffix(b.String(), ",") + "]}")
}

// trace is an error text of 32 kB.
func trace() string {
	var b strings.Builder
	b.WriteString("connect amqp://guest:guest@mq:5672/: password=hunter2 refused\n")
	for i := 0; b.Len() < 32<<10; i++ {
		fmt.Fprintf(&b, "  at Worker.run (/srv/app/lib/worker-%d.js:%d:17) [as handler], order: %d\n", i, i, i)
	}
	return b.String()
}

func BenchmarkPayload(b *testing.B) {
	r, data := made(b, Options{Paths: []string{"$.items[*].customer.email"}}), large()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r.Payload(data)
	}
}

func BenchmarkText(b *testing.B) {
	r, s := Default(), trace()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		r.Text(s)
	}
}
