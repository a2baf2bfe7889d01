package redissource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/preset"
)

// Work is a queue in Redis to which jobs go back whose dead letters are in a database.
// No transaction spans both, so pushing a job is an act that can be repeated: the script
// leaves a mark with the name of the dead letter, and pushes nothing where it finds one.
type Work struct {
	origin *Origin
	prefix string // of its keys
	after  string // what comes after it in the keys of all queues
}

// OpenWork connects with the Redis of a preset's work.
func OpenWork(ctx context.Context, address string, p *preset.Preset, s preset.Settings) (*Work, error) {
	p, s, err := p.Complete(s)
	if err != nil {
		return nil, err
	}

	of := &preset.Preset{
		Name: p.Name, Profile: p.Profile, Family: "redis", Names: s.Values, Codec: "json",
		Redis:  &preset.Redis{Keys: p.Work.Keys, Writes: preset.Writes{Replay: p.Work.Writes}},
		Replay: map[source.Mode][]string{source.Once: {p.Work.Push}},
	}

	o, err := Open(ctx, address, of, preset.Settings{})
	if err != nil {
		return nil, fmt.Errorf("the queue in Redis: %w", err)
	}

	after, _, _ := strings.Cut(strings.TrimPrefix(p.Work.Keys["work"], "{prefix}"), "{queue}")

	return &Work{o, s.Values["prefix"], after}, nil
}

// Close ends the connections.
func (w *Work) Close() error { return w.origin.Close() }

// Check looks whether jobs can be pushed, and warns when they would go where no worker looks.
func (w *Work) Check(ctx context.Context) (r source.Report, err error) {
	defer w.origin.line.Begin(ctx, bounded.MaxRequest)(&err)

	facts, err := w.origin.info(ctx, w.origin.client)
	if err != nil {
		return r, fmt.Errorf("the queue in Redis: %w", err)
	}

	if err := w.origin.may(ctx, &r, facts["role"], source.Replay); err != nil {
		return r, err
	}

	return r, w.placed(ctx, &r)
}

// placed warns when Redis has no key of a queue with the prefix that is configured. A queue
// that is empty has no key: where others are found, their prefixes are named.
func (w *Work) placed(ctx context.Context, r *source.Report) error {
	here, others, err := w.prefixes(ctx)
	switch {
	case err != nil && refused(err):
		r.Warnings = append(r.Warnings, fmt.Sprintf("Redrive cannot tell whether the prefix %s is that of the application: %s.", w.prefix, err))
		return nil
	case err != nil || here:
		return err
	}

	says := fmt.Sprintf("Redis has no key that begins with %s%s. ", w.prefix, w.after)
	if len(others) == 0 {
		says += "The queues are empty, or the prefix is not that of the application. A job that is pushed with another prefix is never run."
	} else {
		says += fmt.Sprintf("Keys of queues with another prefix are there: set the field prefix to %s, if that is the application's. "+
			"A job that is pushed with another prefix is never run.", strings.Join(others, " or "))
	}

	r.Warnings = append(r.Warnings, says)

	return nil
}

// otherPrefixes is how many prefixes are named.
const otherPrefixes = 3

// prefixes looks for keys of queues, with the prefix and with others.
func (w *Work) prefixes(ctx context.Context) (here bool, others []string, err error) {
	nodes, err := w.origin.nodes(ctx)
	if err != nil {
		return false, nil, err
	}

	found := map[string]bool{}
	for _, node := range nodes {
		cursor := uint64(0)
		for range firstScans {
			var keys []string

			keys, cursor, err = node.Scan(ctx, cursor, "*"+w.after+"*", scanCount).Result()
			if err != nil {
				return false, nil, err
			}

			for _, key := range keys {
				if strings.Contains(key, ":redrive:") { // a mark that a push has left
					continue
				}

				prefix, _, _ := strings.Cut(key, w.after)

				// One key with the prefix is enough.
				if prefix == w.prefix {
					return true, nil, nil
				}

				if len(found) < otherPrefixes {
					found[clip.Text(source.ShownName(prefix), 64)] = true
				}
			}

			// The node has no further keys.
			if cursor == 0 {
				break
			}
		}
	}

	return false, slices.Sorted(maps.Keys(found)), nil
}

// Pushed reports whether a push with an id has left its mark, which a user without the right
// to look is not told.
func (w *Work) Pushed(ctx context.Context, queue, id string) (found bool, err error) {
	defer w.origin.line.Begin(ctx, bounded.MaxRequest)(&err)

	n, err := w.origin.client.Exists(ctx, fill(w.origin.at.Keys["mark"], queue, id)).Result()
	if err != nil && refused(err) {
		return false, nil
	}

	return n > 0, err
}

// Push adds a job to a queue, to run at a time or at once, and once for each id. A refusal
// is a *preset.Refusal: nothing was changed. After any other error it is unknown whether the
// job was added, and the same push can be repeated.
func (w *Work) Push(ctx context.Context, queue, id string, clean []byte, at time.Time) (err error) {
	defer w.origin.line.Begin(ctx, bounded.MaxRequest)(&err)

	c := call{script: w.origin.scripts[act{source.Replay, source.Once}], keys: w.origin.keysOf(queue, id)}
	if w.origin.cluster && !together(c.keys) {
		return &preset.Refusal{Why: apart}
	}

	c.args = append(arguments(id, "", clean, queue, time.Now()), due(at), "")

	results, err := w.origin.run(ctx, []call{c})
	switch {
	case err != nil:
		return fmt.Errorf("the queue in Redis: %w", err)
	case len(results) == 1 && results[0].State == source.Done:
		return nil
	case len(results) == 1 && results[0].State == source.Refused:
		return &preset.Refusal{Why: results[0].Why}
	}

	return errors.New("the queue in Redis did not take the job")
}
