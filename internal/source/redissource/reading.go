package redissource

import (
	"redrive/internal/source"
)

// reading is the making of a page.
type reading struct {
	source.Page
	limit int
	bytes int64           // that were sent
	met   map[string]bool // keys, since the same bytes can be in a list twice
}

func (r *reading) full() bool {
	return len(r.Records)+len(r.Refused) >= r.limit || r.bytes >= maxPageBytes
}

// share is how many records of each queue fit into a page.
func (r *reading) share(queues []string) int64 {
	return int64(min(mostNew, max(1, r.limit/max(1, len(queues)))))
}

// add puts records into the page. The same bytes twice are one record: it cannot be told
// which of the two an act would take.
func (r *reading) add(c batch) {
	for _, record := range c.records {
		if !r.met[record.Key] {
			r.Records = append(r.Records, record)
		}

		r.met[record.Key] = true
	}

	for _, refusal := range c.refused {
		if !r.met[refusal.Key] {
			r.Refused = append(r.Refused, refusal)
		}

		r.met[refusal.Key] = true
	}

	r.bytes += c.bytes
}
