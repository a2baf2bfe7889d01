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

// deep is a document of a size, 500 brackets deep, of many small things.
func deep(size int, thing string) []byte {
	const levels = 500
	things := strings.Repeat(thing+",", max(1, (size-levels*len(`{"a":}`))/(len(thing)+1)))
	return []byte(strings.Repeat(`{"a":`, levels) + "{" + strings.TrimSuffix(things, ",") + "}" + strings.Repeat("}", levels))
}

func BenchmarkPayload_Deep(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			r, data := Default(), deep(size, `"pin":1`)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r.Payload(data)
			}
		})
	}
}

func BenchmarkMerge_Deep(b *testing.B) {
	r, data := Default(), deep(1<<20, `"pin":1`)
	edited := append(r.Payload(data), '\n')
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Merge(edited, data); err != nil {
			b.Fatal(err)
		}
	}
}
