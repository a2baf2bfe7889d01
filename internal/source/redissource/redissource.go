// Package redissource attaches systems that keep their dead letters in Redis, as a preset
// describes them.
//
// Looking changes nothing and costs little: queues are found with SCAN, never with KEYS,
// and no command reads more than a chunk. Lists and sorted sets shift while they are
// read, so a pass can miss a record or meet it twice; a caller that misses one asks for
// it by its name with [Origin.Find] before it counts as gone.
//
// An act is one script, which Redis runs as a whole: it finds the record as the person
// saw it, or changes nothing. Nothing is ever sent twice: when an answer is lost, it is
// unknown what happened, and the record is looked up.
package redissource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// The library would write to standard error what its callers are told anyway.
func init() { logging.Disable() }

// dialTimeout is how long a connection may take to be made.
const dialTimeout = 10 * time.Second

// Origin is an attached Redis.
type Origin struct {
	client  redis.UniversalClient
	line    *bounded.Line // of its connections
	cluster bool
	preset  *preset.Preset
	at      preset.Redis // with the names of redrive.yaml in its keys
	codec   codec.Codec
	hash    func(*source.Record, codec.Fields) // for records that are hashes; else nil
	fault   func(codec.Fields) string          // why workers could not read such a record; nil: they can
	keys    []string                           // names of the keys of the scripts
	scripts map[act]*redis.Script
	queues  discovery
	fronts  map[string]*front // by queue; nil before the first look
	step    int64             // records that are read with the next command
}

// act is what a script does.
type act struct {
	kind source.Kind
	mode source.Mode
}

// Open connects with the Redis that a URL names, redis://user:password@host:port/database,
// or rediss:// with TLS.
func Open(ctx context.Context, address string, p *preset.Preset, s preset.Settings) (_ *Origin, err error) {
	p, s, err = p.Complete(s)
	if err != nil {
		return nil, err
	}

	o := &Origin{preset: p, keys: slices.Sorted(maps.Keys(p.Redis.Keys)), line: bounded.New(bounded.Redis), step: 1}
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	if err := o.describe(s.Names); err != nil {
		return nil, err
	}

	o.compose()

	options, err := redis.ParseURL(address)
	if err != nil { // the error could have the password
		return nil, errors.New("the URL cannot be read; it is like redis://user:password@host:6379/0, or rediss:// with TLS")
	}

	if err := o.connect(ctx, options); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}

	return o, nil
}

// describe sets where the records are and how they are read.
func (o *Origin) describe(names map[string]string) error {
	p := o.preset
	if p.Own {
		o.at = *p.Redis

		var hash func(*source.Record, codec.Fields)
		o.codec, hash = codec.Own(names, preset.Traces)
		if p.Redis.Hash != nil {
			o.hash = hash
		}

		return nil
	}

	// A codec reads either the bytes of a record or the fields of a hash.
	o.at = named(*p.Redis, names)

	var known bool
	o.codec, known = codec.Get(p.Codec)
	if known {
		return nil
	}

	o.fault, _ = codec.Fault(p.Codec)

	o.hash, known = codec.Hash(p.Codec)
	if !known { // unreachable: a test reads all presets
		return fmt.Errorf("the preset %s names a codec that there is not: %s", p.Name, p.Codec)
	}

	return nil
}

// connect opens a client, which is another one when the server is a node of a Cluster.
func (o *Origin) connect(ctx context.Context, options *redis.Options) error {
	careful(options)
	options.Dialer = o.dial(options.TLSConfig)

	single := redis.NewClient(options)

	// The server itself says whether it is a node of a Cluster.
	facts, err := o.info(ctx, single)
	if err != nil || facts["cluster_enabled"] != "1" {
		o.client = single
		if err != nil {
			err = errors.Join(err, single.Close())
		}

		return err
	}

	// The client of a Cluster makes its own connections.
	if err := single.Close(); err != nil {
		return err
	}

	if options.DB != 0 {
		return errors.New("this is a Redis Cluster, which has only the database 0")
	}

	o.cluster = true
	o.client = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{options.Addr}, Username: options.Username, Password: options.Password, TLSConfig: options.TLSConfig,
		Dialer: options.Dialer, Protocol: options.Protocol, MaxRedirects: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
		DialTimeout: options.DialTimeout, ReadTimeout: options.ReadTimeout, PoolSize: options.PoolSize,
		MaintNotificationsConfig: options.MaintNotificationsConfig,
	})

	return nil
}

// careful sets what a guest owes to a server, whatever the URL says. A command that is
// sent once more after its answer was lost would find its own work done and report that
// the record is gone.
func careful(o *redis.Options) {
	o.MaxRetries, o.PoolSize, o.Protocol = -1, 2, 2
	o.ContextTimeoutEnabled, o.DisableIdentity = true, true

	o.DialTimeout, o.ReadTimeout = dialTimeout, 20*time.Second
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if o.TLSConfig != nil {
		o.TLSConfig.MinVersion = tls.VersionTLS12
	}
}

// Close ends the connections.
func (o *Origin) Close() error { return o.client.Close() }

// dial opens connections that are bounded.
func (o *Origin) dial(secure *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 5 * time.Minute}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return o.line.Dial(ctx, dialer, network, address, secure)
	}
}

// info reads what the server says about itself.
func (o *Origin) info(ctx context.Context, client redis.Cmdable) (map[string]string, error) {
	text, err := client.Info(ctx).Result()
	if left, ok := o.line.Omitted(text); ok {
		return nil, fmt.Errorf("this is not Redis: what it says about itself has %s", source.Size(left.Size))
	}

	facts := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			facts[name] = value
		}
	}

	return facts, err
}
