package web

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/server/problem"
)

// ParamQueue is the queue that the address names. It must have had a job or be
// configured: a typing mistake must not make a queue.
func (s *Site) ParamQueue(c echo.Context) (string, error) {
	name := c.Param("name")
	if err := filter.CheckQueue(name); err != nil {
		return "", problem.InAddress(err)
	}

	if !s.KnowsQueue(name) {
		return "", job.ErrNotFound
	}

	return name, nil
}

// KnowsQueue reports whether a queue had a job or is configured.
func (s *Site) KnowsQueue(name string) bool {
	return slices.Contains(s.Config.Queues(), name) || s.View.HasQueue(name)
}

// QueueNames are the queues that had a job and those that are configured.
func (s *Site) QueueNames() []string {
	return slices.Compact(slices.Sorted(slices.Values(append(s.Config.Queues(), s.View.QueueNames()...))))
}

// MaxQueues is how many queues an answer to a program lists, and how many a form
// has to choose from.
const MaxQueues = 1000

// QueueChoices are the queues that a form has to choose from: all of them, or the
// ones that are configured and those with the most jobs.
func (s *Site) QueueChoices(ctx context.Context) ([]string, error) {
	var all []job.Status
	for _, state := range job.States() {
		all = append(all, job.Status(state))
	}

	fullest, err := s.View.Fullest(ctx, MaxQueues, all)

	return Foremost(MaxQueues, s.QueueNames(), s.Config.Queues(), fullest), err
}

// Foremost picks up to n names, in the order of all: those of the lists that come
// first, and then others.
func Foremost(n int, all []string, first ...[]string) []string {
	if len(all) <= n {
		return all
	}

	picked := map[string]bool{}
	for _, names := range append(first, all) {
		for _, name := range names {
			if len(picked) < n {
				picked[name] = true
			}
		}
	}

	return slices.Sorted(maps.Keys(picked))
}

// Queues describes some of the queues of [Site.QueueNames], in the order of their
// names. One that is only configured has no numbers.
func (s *Site) Queues(ctx context.Context, names []string) ([]queues.Info, error) {
	all, err := s.View.Queues(ctx, time.Now(), names)
	found := map[string]bool{}
	for _, q := range all {
		found[q.Name] = true
	}

	for _, name := range names {
		if !found[name] {
			all = append(all, queues.Info{Name: name, Source: job.SourceOf(name)})
		}
	}

	slices.SortFunc(all, func(a, b queues.Info) int { return cmp.Compare(a.Name, b.Name) })

	return all, err
}

// Queue is one queue with its numbers.
func (s *Site) Queue(ctx context.Context, name string) (queues.Info, error) {
	all, err := s.Queues(ctx, []string{name})
	return all[0], err
}

// WorkerQueues are up to n queues, those with workers first. When there are more,
// they are the ones in which something runs or waits.
func (s *Site) WorkerQueues(ctx context.Context, n int) ([]queues.Info, error) {
	running := slices.Collect(maps.Keys(s.Engine.Running()))

	waiting, err := s.View.Fullest(ctx, n, []job.Status{job.Status(job.Available)})
	if err != nil {
		return nil, err
	}

	all, err := s.Queues(ctx, Foremost(n, s.QueueNames(), running, waiting))
	idle := func(q queues.Info) int { return 1 - min(s.Config.Workers(q.Name), 1) }
	slices.SortStableFunc(all, func(a, b queues.Info) int { return cmp.Compare(idle(a), idle(b)) })

	return all, err
}

// WebhookHost is where a queue sends its dead letters, without credentials; empty
// when it has no webhook.
func (s *Site) WebhookHost(queue string) string {
	hook, ok := s.Config.Webhook(queue)
	if !ok {
		return ""
	}

	u, err := url.Parse(hook.URL)
	if err != nil { // unreachable: the configuration has parsed it
		return "a webhook"
	}

	return u.Host
}
