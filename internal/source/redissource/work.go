package redissource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/preset"
)

// Work is a queue in Redis to which jobs go back whose dead letters lie in a database.
// No transaction spans both, so pushing a job is an act that can be repeated: the script
// leaves a mark with the name of the dead letter, and pushes nothing where it finds one.
type Work struct{ origin *Origin }

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
	return &Work{o}, nil
}

// Close ends the connections.
func (w *Work) Close() error { return w.origin.Close() }

// Check looks whether jobs can be pushed, and says why not.
func (w *Work) Check(ctx context.Context) (warnings []string, err error) {
	defer w.origin.line.Begin(ctx, bounded.MaxRequest)(&err)
	facts, err := w.origin.info(ctx, w.origin.client)
	if err != nil {
		return nil, fmt.Errorf("the queue in Redis: %w", err)
	}
	var r source.Report
	err = w.origin.may(ctx, &r, facts["role"], source.Replay)
	return r.Warnings, err
}

// Push adds a job to a queue, to run at a time or at once, and once for each id. A refusal is a *preset.Refusal: nothing
// was changed. After any other error nobody knows, and the same push can be repeated.
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
