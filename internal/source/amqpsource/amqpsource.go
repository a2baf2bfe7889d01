// Package amqpsource attaches dead-letter queues of RabbitMQ, as a preset describes them.
//
// AMQP cannot look at a queue. What comes nearest is to take the messages out without
// acknowledging them and to put them back: RabbitMQ keeps their order, but marks them as
// redelivered, and no other consumer gets them meanwhile. There are consumers that drop a
// redelivered message without running it, and queues that drop a message which was
// delivered too often. So only queues that the operator names are looked at, never a
// queue that has a consumer, and one that counts deliveries only when the operator
// allows it. Messages are held for the length of one look.
//
// AMQP has no unit either that moves a message from one queue to another. A replay
// publishes a copy, waits until the broker has confirmed it, and acknowledges the dead
// letter then. If that is interrupted, the message can be in both queues, but never in
// none. Afterwards it cannot be told whether the copy was made, so such an act is unknown,
// and is never carried out again automatically.
package amqpsource

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// What a look may cost.
const (
	maxHeld       = 1000                             // messages of a queue
	maxHeldBytes  = 64 << 20                         // of their bodies, in all queues together
	maxSentBytes  = 500 << 20                        // of bodies that RabbitMQ sends, with those that are too large to be held
	maxPageBytes  = 8 << 20                          // after which a page ends
	maxLookBytes  = maxSentBytes + 2*bounded.MaxBody // that RabbitMQ sends to a look
	maxCheckBytes = bounded.MaxBody + maxPageBytes   // that RabbitMQ sends to a check, which can get one message
	dialTimeout   = 10 * time.Second
	closeTimeout  = 2 * time.Second
	heartbeat     = 10 * time.Second // unless the URL or RabbitMQ wants another one
)

// maxLook is how long a look may take. Only tests change it.
var maxLook = 10 * time.Second

// maxBeats is after how many heartbeats RabbitMQ has noticed for certain that an earlier
// connection broke: it waits for up to two, and the third is a reserve. Only tests change it.
var maxBeats time.Duration = 3

// Origin is an attached virtual host of RabbitMQ.
type Origin struct {
	conn   *amqp.Connection
	opened time.Time
	line   *bounded.Line // of the connection
	preset *preset.Preset
	at     *preset.AMQP
	codec  codec.Codec
	queues []string // with dead letters
	values map[string]string

	looks  *amqp.Channel   // on which messages are held
	seen   []source.Record // what the last look has found
	large  []source.Refusal
	copies copies
}

// Open connects with the virtual host that a URL names, amqp://user:password@host:port/vhost,
// or amqps:// with TLS.
func Open(ctx context.Context, address string, p *preset.Preset, s preset.Settings) (_ *Origin, err error) {
	p, s, err = p.Complete(s)
	if err != nil {
		return nil, err
	}

	o := &Origin{preset: p, at: p.AMQP, queues: s.Queues, values: s.Values, copies: copies{}, line: bounded.New(bounded.AMQP)}
	defer o.line.Begin(ctx, maxCheckBytes)(&err)

	var known bool
	o.codec, known = codec.Get(p.Codec)
	if !known {
		return nil, fmt.Errorf("the preset %s names a codec that there is not: %s", p.Name, p.Codec)
	}

	uri, err := amqp.ParseURI(address)
	if err != nil { // the error could have the password
		return nil, errors.New("the URL cannot be read; it is like amqp://user:password@host:5672/vhost, or amqps:// with TLS")
	}

	var secure *tls.Config
	if uri.Scheme == "amqps" {
		secure, err = encryption(uri)
		if err != nil {
			return nil, err
		}
	}

	config := amqp.Config{
		Heartbeat: heartbeat, Properties: amqp.Table{"product": "Redrive", "connection_name": "Redrive"},
		Dial: func(network, _ string) (net.Conn, error) {
			dialer := &net.Dialer{Timeout: dialTimeout, Deadline: time.Now().Add(dialTimeout)}

			conn, err := o.line.Dial(ctx, dialer, network, net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port)), secure)
			if err == nil {
				err = conn.SetDeadline(time.Now().Add(dialTimeout)) // of the handshake; the library lifts it
			}

			return conn, err
		},
	}

	// The encryption is made here and not by the library, so that the line sees what is in it.
	plain := "amqp" + strings.TrimPrefix(address, uri.Scheme)

	o.conn, err = amqp.DialConfig(plain, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}

	o.opened = time.Now()

	return o, nil
}

// encryption is how the library would encrypt a connection, by what the URL says.
func encryption(uri amqp.URI) (*tls.Config, error) {
	config := &tls.Config{ServerName: cmp.Or(uri.ServerName, uri.Host), MinVersion: tls.VersionTLS12}
	if uri.CACertFile != "" {
		text, err := os.ReadFile(uri.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate of the authority: %w", err)
		}

		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(text)
	}

	if uri.CertFile != "" && uri.KeyFile != "" {
		certificate, err := tls.LoadX509KeyPair(uri.CertFile, uri.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate of the client: %w", err)
		}

		config.Certificates = []tls.Certificate{certificate}
	}

	return config, nil
}

// alone reports whether messages that are not found have left their queue. Before that, an
// earlier connection of Redrive's that broke can still hold them.
func (o *Origin) alone() bool {
	beat := o.conn.Config.Heartbeat
	if beat == 0 { // it is switched off
		beat = heartbeat
	}

	return time.Since(o.opened) >= maxBeats*beat
}

// Close ends the connection. Messages that are held go back to their queues.
func (o *Origin) Close() error {
	if o.conn.IsClosed() {
		return nil
	}
	return o.conn.CloseDeadline(time.Now().Add(closeTimeout))
}

// inTime is when a look has to stop reading: halfway to the end of ctx, so that there is
// time to put everything back.
func inTime(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Now().Add(maxLook)
	}

	return time.Now().Add(time.Until(end) / 2)
}

// Check looks whether the queues are there and bear to be looked at, counts the messages
// in them, and asks what the user may do.
func (o *Origin) Check(ctx context.Context) (r source.Report, err error) {
	defer o.line.Begin(ctx, maxCheckBytes)(&err)

	r = source.Report{Version: o.preset.Version}
	if version, ok := o.conn.Properties["version"].(string); ok {
		r.Sees = append(r.Sees, "RabbitMQ "+version)
	}

	for _, queue := range o.queues {
		n, err := o.inspect(queue)
		if err != nil {
			return r, err
		}

		r.Sees = append(r.Sees, fmt.Sprintf("the queue %s, messages: %d", source.ShownName(queue), n))
		if n > maxHeld {
			r.Warnings = append(r.Warnings, fmt.Sprintf("Only the first %d messages of %s are seen.", maxHeld, source.ShownName(queue)))
		}
	}

	r.May = []source.Kind{source.Discard} // who may read may remove

	// A replay has to publish to the queue of the job, which is a right of its own.
	problem, err := o.mayPublish()
	switch {
	case err != nil:
		return r, err
	case problem != "":
		r.Warnings = append(r.Warnings, "The user may not replay: "+problem)
	default:
		r.May = []source.Kind{source.Replay, source.Discard}
	}

	return r, nil
}

// inspect counts the messages of a queue, and refuses one that must not be looked at.
// Its type is told without a look: RabbitMQ refuses a consumer that shares its prefetch
// with others at every queue that is not a classic one. A classic one may deliver its
// first message, which goes back when the channel closes.
func (o *Origin) inspect(queue string) (messages int, err error) {
	channel, err := o.conn.Channel()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closed(channel)) }()

	// With quorum: allow, a queue of any type may be looked at.
	messages, err = idle(channel, queue)
	if err != nil || o.values["quorum"] == preset.Allow {
		return messages, err
	}

	const shared, exclusive = true, true

	err = channel.Qos(1, 0, shared)
	if err == nil {
		_, err = channel.Consume(queue, "", false, exclusive, false, false, nil)
	}

	var refused *amqp.Error
	switch {
	case errors.As(err, &refused) && (refused.Code == amqp.NotImplemented || refused.Code == amqp.PreconditionFailed):
		return 0, fmt.Errorf("%s is not a classic queue. A quorum queue counts each look as a delivery, and drops a message that "+
			"was delivered too often: 20 times, unless it is set otherwise, since RabbitMQ 4. "+
			"If it has no delivery limit, set quorum: allow in redrive.yaml. A stream cannot be attached", source.ShownName(queue))
	case err != nil:
		return 0, fmt.Errorf("the queue %s: %w", source.ShownName(queue), err)
	}

	return messages, nil
}

// idle counts the messages of a queue, and refuses a queue that has a consumer.
func idle(channel *amqp.Channel, queue string) (messages int, err error) {
	q, err := channel.QueueDeclarePassive(queue, false, false, false, false, nil)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the queue %s: %w", source.ShownName(queue), err)
	case q.Consumers > 0:
		return 0, fmt.Errorf("the queue %s has consumers (%d). Redrive only looks at a queue that no one works off, "+
			"because a look marks its messages as redelivered. Take it out of queues in redrive.yaml, or stop them",
			source.ShownName(queue), q.Consumers)
	}

	return q.Messages, nil
}

// mayPublish says why the user may not publish to queues; empty when that is allowed. It
// publishes to a queue that there is not, which RabbitMQ returns.
func (o *Origin) mayPublish() (problem string, err error) {
	out := publisher{conn: o.conn}
	defer out.close()

	if err := out.open(); err != nil {
		return "", err
	}

	problem, err = out.publish("redrive.is.this.allowed", amqp.Publishing{})
	if strings.HasPrefix(problem, returned) {
		problem = ""
	}

	return problem, err
}

// closed closes a channel, unless RabbitMQ has.
func closed(channel *amqp.Channel) error {
	if err := channel.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return err
	}
	return nil
}
