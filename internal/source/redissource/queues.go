package redissource

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// What the search for queues may cost.
const (
	maxQueues  = 10000
	scanCount  = 1000 // keys that one SCAN looks at
	firstScans = 2000 // SCANs of the first search, which cannot be left out
	laterScans = 20   // and of each later one, which goes on where the last one ended
)

// discovery is what is known of the queues of a source. A search through many keys takes
// several rounds; until it ends, the queues are those of the one before.
type discovery struct {
	names  []string // sorted
	found  map[string]bool
	done   bool // a whole search has ended
	node   int  // of a Cluster, that the search has come to
	cursor uint64
}

// discover brings the names of the queues up to date.
func (o *Origin) discover(ctx context.Context) error {
	d, q := &o.queues, o.at.Queues
	switch {
	case q.Set != "":
		return o.members(ctx)
	case q.Scan == "":
		d.names = []string{""}
		return nil
	}

	nodes, err := o.nodes(ctx)
	if err != nil {
		return err
	}

	// The first look needs the queues. Later ones look for new queues, a few steps at a time.
	budget := laterScans
	if !d.done {
		budget = firstScans
	}

	for range budget {
		if ended, err := o.search(ctx, nodes); err != nil || ended {
			return err
		}
	}

	if !d.done { // the rest comes later
		d.names, d.done = slices.Sorted(maps.Keys(d.found)), true
	}

	return nil
}

// members reads the set of all queues.
func (o *Origin) members(ctx context.Context) error {
	form := cmp.Or(o.at.Queues.Member, "{queue}")
	found := map[string]bool{}
	for cursor, more := uint64(0), true; more && len(found) < maxQueues; more = cursor != 0 {
		names, next, err := o.client.SScan(ctx, o.at.Queues.Set, cursor, "", scanCount).Result()
		if err != nil {
			return err
		}

		for _, name := range names {
			if queue, ok := queueIn(form, name); ok {
				found[queue] = true
			}
		}

		cursor = next
	}

	o.queues.names = slices.Sorted(maps.Keys(found))

	return nil
}

// search does one SCAN, and reports whether it was the last one of a whole search.
func (o *Origin) search(ctx context.Context, nodes []*redis.Client) (ended bool, err error) {
	d, form := &o.queues, o.at.Queues.Scan
	if d.node >= len(nodes) { // the Cluster has shrunk
		d.node, d.cursor = 0, 0
	}

	keys, cursor, err := nodes[d.node].ScanType(ctx, d.cursor, glob(form), scanCount, o.at.Queues.Type).Result()
	if err != nil {
		return false, err
	}

	if d.found == nil {
		d.found = map[string]bool{}
	}

	// SCAN can give a key more than once.
	for _, key := range keys {
		if queue, ok := queueIn(form, key); ok && len(d.found) < maxQueues {
			d.found[queue] = true
		}
	}

	d.cursor = cursor

	// This node has more keys.
	if cursor != 0 {
		return false, nil
	}

	d.node++
	if d.node < len(nodes) {
		return false, nil
	}

	// All nodes were searched: what was found takes the place of what was known.
	*d = discovery{names: slices.Sorted(maps.Keys(d.found)), done: true}

	return true, nil
}

// nodes are the servers that have to be searched: each master of a Cluster.
func (o *Origin) nodes(ctx context.Context) (all []*redis.Client, err error) {
	switch client := o.client.(type) {
	case *redis.Client:
		return []*redis.Client{client}, nil
	case *redis.ClusterClient:
		var mu sync.Mutex
		err = client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()

			all = append(all, node)

			return nil
		})
	}

	slices.SortFunc(all, func(a, b *redis.Client) int { return cmp.Compare(a.Options().Addr, b.Options().Addr) })

	return all, err
}
