package redissource

import (
	"redrive/internal/source"
)

// reading collects one page of records from the queues of a source.
type reading struct {
	source.Page
	limit int             // of records
	bytes int64           // that the server has sent for it
	met   map[string]bool // the keys that are on the page already
}

// full reports whether no more records fit. The last ones may have gone beyond the limit.
func (r *reading) full() bool {
	return len(r.Records)+len(r.Refused) >= r.limit || r.bytes >= maxPageBytes
}

// share is how many records of each queue fit into a page: one at least, also of more queues
// than there are places.
func (r *reading) share(queues []string) int64 {
	return int64(min(mostNew, max(1, r.limit/max(1, len(queues)))))
}

// add puts records into the page. The same bytes twice are one record: it cannot be told
// which of the two a replay or a discard would take.
func (r *reading) add(b batch) {
	for _, record := range b.records {
		if !r.met[record.Key] {
			r.Records = append(r.Records, record)
		}

		r.met[record.Key] = true
	}

	for _, refusal := range b.refused {
		if !r.met[refusal.Key] {
			r.Refused = append(r.Refused, refusal)
		}

		r.met[refusal.Key] = true
	}

	r.bytes += b.bytes
}
