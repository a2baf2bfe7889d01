package redissource

import (
	"fmt"
	"strings"

	"redrive/internal/source"
)

// place is where a reading goes on: so many records into a queue. Among the newest records
// of all queues, it is in a level: those of each queue between two depths.
type place struct {
	queue    string
	n        int64
	from, to int64 // of the level; 0: all records are read, one queue after the other
}

func (p place) String() string {
	return fmt.Sprintf("%s\n%d\n%d\n%d", source.ShownName(p.queue), p.n, p.from, p.to)
}

func placeOf(text string) (p place, err error) {
	queue, numbers, _ := strings.Cut(text, "\n")
	if _, err := fmt.Sscanf(numbers, "%d\n%d\n%d", &p.n, &p.from, &p.to); err != nil {
		return p, fmt.Errorf("%q is not a place in Redis", text)
	}

	p.queue = meant(queue)

	return p, nil
}
