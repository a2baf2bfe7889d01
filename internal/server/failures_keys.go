package server

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"redrive/internal/job"
	"redrive/web/templates/failurepage"
)

// maxKeys is how many payload keys the page of a group shows.
const maxKeys = 12

// commonest counts, for each top-level key of the payloads of jobs, how many
// values it has, and which of them most jobs have. Payloads that are no objects,
// or too large to be read here, do not count.
func commonest(jobs []job.Job) (keys []failurepage.PayloadKey, read int) {
	seen := map[string]map[string]int{}
	for _, j := range jobs {
		var object map[string]json.RawMessage
		if json.Unmarshal(j.Payload, &object) != nil || object == nil {
			continue
		}
		read++
		for name, value := range object {
			if seen[name] == nil {
				seen[name] = map[string]int{}
			}
			seen[name][string(value)]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		key := failurepage.PayloadKey{Name: name, Values: len(seen[name])}
		for _, value := range slices.Sorted(maps.Keys(seen[name])) {
			if n := seen[name][value]; n > key.Jobs {
				key.Commonest, key.Jobs = value, n
			}
		}
		keys = append(keys, key)
	}
	slices.SortStableFunc(keys, func(a, b failurepage.PayloadKey) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Values, b.Values))
	})
	return keys[:min(len(keys), maxKeys)], read
}
