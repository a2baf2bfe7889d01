package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
)

// BenchmarkMirror_FirstReading measures how fast the store takes over the dead letters of a
// source that is read for the first time, in pages as the sources read them, with the search
// index.
//
//	go test ./internal/store -run '^$' -bench Mirror -benchtime 1x
func BenchmarkMirror_FirstReading(b *testing.B) {
	const pages, page = 200, 500
	for b.Loop() {
		s, watch := openBench(b), stopwatch{}
		for n := range pages {
			records := foreignRecords(n*page, page)
			watch.measure(page, func() {
				if got, err := s.Mirror.Update(b.Context(), benchTime, "shop", records); err != nil || got != page {
					b.Fatal(got, err)
				}
			})
		}
		b.ReportMetric(watch.rate(), "records/s")
		b.ReportMetric(watch.cost(), "cpu-µs/record")
		b.ReportMetric(float64(watch.allocs)/float64(watch.jobs), "allocs/record")
		check(b, s.Close())
	}
}

// foreignRecords are like those of Sidekiq: a payload of 200 bytes, an error with its
// trace, and all of it as it is stored there.
func foreignRecords(from, n int) []source.Record {
	records := make([]source.Record, n)
	trace := strings.Repeat("app/workers/charge.rb:17:in 'perform'\n", 10)
	for i := range records {
		id := fmt.Sprintf("%024x", from+i)
		payload := fmt.Sprintf(`{"order":%d,"customer":"customer-%d@example.org","note":%q}`, from+i, i, strings.Repeat("x", 120))
		records[i] = source.Record{
			Key: id, Lineage: id, Place: "dead", VersionToken: "1767323045.1", Raw: []byte(`{"class":"Charge","jid":"` + id + `","args":[` + payload + `]}`),
			Queue: "default", Type: fmt.Sprintf("Charge%d", i%20), Payload: []byte(payload), Meta: []byte(`{"retry":true}`),
			Error: job.ErrorInfo{Type: "Net::ReadTimeout", Message: fmt.Sprintf("order %d: the provider did not answer", from+i)},
			Trace: trace, Attempts: 26, Limit: 26, FailedAt: benchTime.Add(-time.Hour + time.Duration(from+i)*time.Millisecond),
		}
	}
	return records
}
