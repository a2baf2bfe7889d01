package app

import (
	"context"
	"errors"
	"fmt"

	"redrive/internal/config"
	"redrive/internal/poll"
	"redrive/internal/source"
	"redrive/internal/source/amqpsource"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/sqlsource"
)

// attachSources prepares the sources of the configuration, which do nothing before their
// start. It has to run before the store is opened, because the store asks the sources what
// they allow.
func (a *App) attachSources() {
	a.sources = poll.New(attached(a.Config), a.Config.Redactor().Text, a.Log)
}

// attached are the sources that a configuration names, with how each is opened.
func attached(c *config.Config) (all []poll.Attached) {
	for _, s := range c.Sources() {
		all = append(all, poll.Attached{
			Name: s.Name, Preset: s.Preset, Profile: s.Profile, Allow: s.Allow, Every: s.Every,
			Fingerprint: s.Fingerprint(), Address: s.Address(), MovedFrom: s.MovedFrom,
			Open: func(ctx context.Context) (source.Origin, error) {
				return OpenSource(ctx, s.Preset, s.URL.Reveal(), s.Work.Reveal(), s.Settings)
			},
		})
	}

	return all
}

// OpenSource connects with a source, by the family of its preset. A system that keeps its
// failed jobs in a database and its queue in Redis has a second URL, work, to which replays go.
func OpenSource(ctx context.Context, p *preset.Preset, url, work string, s preset.Settings) (source.Origin, error) {
	switch p.Family {
	case "amqp":
		return amqpsource.Open(ctx, url, p, s)
	case "redis":
		return redissource.Open(ctx, url, p, s)
	case "sql":
		o, err := sqlsource.Open(ctx, url, p, s)
		if err != nil {
			return nil, err
		}

		if p.Work == nil {
			return o, nil
		}

		queue, err := redissource.OpenWork(ctx, work, p, s)
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}

		o.SendTo(queue)

		return o, nil
	}

	return nil, fmt.Errorf("the preset %s is of no known family", p.Name) // unreachable: a test reads them all
}

// startSources begins to mirror the sources, and to carry out what people ask of them. The
// store's projection keeps both the records of sources and the requests to them.
func (a *App) startSources(context.Context) error {
	a.sources.Start(a.store.Mirror, a.store.Sources, a.store.Sources)
	a.onClose("sources", a.sources.Close)
	return nil
}
