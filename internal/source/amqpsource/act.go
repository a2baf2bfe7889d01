package amqpsource

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/codec"
)

// beyond says why a record is not found that may be there.
const beyond = "it is not among the messages at the head of its queue, which is as far as Redrive looks"

// acting is the carrying out of acts.
type acting struct {
	*Origin
	out   publisher
	begun map[int64]bool // acts for which RabbitMQ may have been told to change something
}

// Act does what the acts say, one after the other, so that at most one message is in two
// queues when this is interrupted. What was not told to RabbitMQ then is still asked for.
func (o *Origin) Act(ctx context.Context, acts []source.Act) (all []source.Result, err error) {
	defer o.line.Begin(ctx, maxLookBytes)(&err)

	d := &acting{Origin: o, out: publisher{conn: o.conn}, begun: map[int64]bool{}}
	defer d.out.close()

	for queue, some := range byQueue(acts) {
		results, problem := d.on(ctx, queue, some)
		all = append(all, results...)

		if problem != nil {
			return append(all, d.notAttempted(acts, all)...), problem
		}
	}

	return all, nil
}

// notAttempted are the acts that have neither begun nor ended.
func (d *acting) notAttempted(acts []source.Act, ended []source.Result) (all []source.Result) {
	for _, a := range acts {
		has := slices.ContainsFunc(ended, func(r source.Result) bool { return r.ID == a.ID })
		if !has && !d.begun[a.ID] {
			all = append(all, source.Result{ID: a.ID, State: source.Asked})
		}
	}

	return all
}

// byQueue are the acts of each queue.
func byQueue(acts []source.Act) map[string][]source.Act {
	all := map[string][]source.Act{}
	for _, a := range acts {
		queue := meant(a.Place)
		all[queue] = append(all[queue], a)
	}

	return all
}

// wanted reports whether the records of acts have been met, one by one.
func wanted(acts []source.Act) (enough func(key string) bool) {
	missing := map[string]bool{}
	for _, a := range acts {
		missing[a.Key] = true
	}

	return func(key string) bool {
		delete(missing, key)
		return len(missing) == 0
	}
}

// on acts on the messages of one queue. An act is done when RabbitMQ has received that
// its dead letter is acknowledged.
func (d *acting) on(ctx context.Context, queue string, acts []source.Act) (all []source.Result, err error) {
	h, err := d.hold(ctx, queue, wanted(acts))
	if err != nil {
		return nil, err
	}

	var done []source.Act
	for _, a := range acts {
		r, problem := d.one(h, a)

		err = problem
		if err != nil {
			break
		}

		if r.State == source.Done {
			done = append(done, a)
		} else {
			all = append(all, r)
		}
	}

	broken := h.release()
	for _, a := range done {
		r := source.Result{ID: a.ID, State: source.Done}
		switch {
		case broken == nil:
			d.copies.took(a.Key)

			all = append(all, r)
		case a.Kind == source.Replay: // a discard is looked up
			r.State, r.Why = source.Unknown, halfway
			all = append(all, r)
		}
	}

	return all, cmp.Or(err, broken)
}

// halfway says what is known of a replay that ended between its copy and its dead letter.
const halfway = "the message was copied to its queue, and the connection broke before its dead letter was removed for certain. " +
	"If it is still there, discard it"

// one carries out one act on a message that is held, or says why not.
func (d *acting) one(h *held, a source.Act) (source.Result, error) {
	r := source.Result{ID: a.ID, State: source.Refused}
	m := h.find(a.Key)
	switch {
	// An earlier connection may still hold the message, so the act stays asked.
	case m == nil && h.whole && !h.alone:
		r.State = source.Asked
		return r, nil
	case m == nil && h.whole, m != nil && m.acked: // two acts on one message are one
		r.State = source.Gone
		return r, nil
	// The queue has more messages than were taken out of it.
	case m == nil:
		r.Why = beyond
		return r, nil
	case m.large > 0 && a.Kind == source.Replay: // its body is not held
		r.Why = source.TooLarge(m.key, m.large).Why
		return r, nil
	}

	if a.Kind == source.Replay {
		target, next, err := d.next(h.queue, m, a)
		if err != nil {
			r.Why = err.Error()
			return r, nil
		}

		if err := d.out.open(); err != nil {
			return r, err
		}

		// From here on RabbitMQ may have the copy, also when its answer is lost.
		d.begun[a.ID] = true

		r.Why, err = d.out.publish(target, next)
		if r.Why != "" || err != nil {
			return r, err
		}
	}

	// The dead letter goes after its copy: an interruption leaves two messages and never none.
	d.begun[a.ID] = true

	if err := m.Ack(false); err != nil {
		return r, err
	}

	m.acked, r.State = true, source.Done

	return r, nil
}

// next is the message for the next run that an act wants, and the queue that it goes to.
func (o *Origin) next(queue string, m *message, a source.Act) (target string, p amqp.Publishing, err error) {
	switch target = o.target(queue, m.Headers); target {
	case "":
		return "", p, errors.New("nothing says from which queue the message came. Name one under target in redrive.yaml")
	case queue:
		return "", p, errors.New("the message died in this very queue, to which a replay would bring it back. " +
			"Name another one under target in redrive.yaml")
	}

	switch missing := o.preset.Unsupported(a.Request()); {
	case missing != "":
		return "", p, errors.New(missing)
	case a.Payload != nil && !json.Valid(m.Body):
		return "", p, errors.New("the body of the message is not JSON, so it cannot be changed")
	case a.Payload != nil && !json.Valid(a.Payload):
		return "", p, errors.New("the payload must be JSON")
	}

	run := codec.Run{Mode: a.Mode, ID: job.NewID(), Payload: a.Payload}

	body, err := o.codec.Next(m.Body, run)
	if err == nil {
		err = m.Headers.Validate()
	}

	// A new job gets an id of its own, if the message had one.
	id := m.MessageId
	if a.Mode == source.New && id != "" {
		id = run.ID
	}

	// All properties go along but the expiration and the name of the user.
	return target, amqp.Publishing{
		Headers: o.clean(m.Headers, a.Mode, a.Due), Body: body,
		ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, DeliveryMode: m.DeliveryMode, Priority: m.Priority,
		CorrelationId: m.CorrelationId, ReplyTo: m.ReplyTo, MessageId: id, Timestamp: m.Timestamp, Type: m.Type, AppId: m.AppId,
	}, err
}

// Find says where the records of acts are. A replay that had begun may have copied a
// message that is still there.
func (o *Origin) Find(ctx context.Context, acts []source.Act) (all []source.Result, err error) {
	defer o.line.Begin(ctx, maxLookBytes)(&err)

	for queue, some := range byQueue(acts) {
		h, err := o.hold(ctx, queue, wanted(some))
		if err != nil {
			return all, err
		}

		for _, a := range some {
			if h.find(a.Key) == nil && h.whole && !h.alone {
				continue // it cannot be told yet
			}

			all = append(all, h.trace(a))
		}

		if err := h.release(); err != nil {
			return all, err
		}
	}

	return all, nil
}

// trace says what it means for an act whether its record is held.
func (h *held) trace(a source.Act) source.Result {
	r := source.Result{ID: a.ID, State: source.Asked}
	switch m := h.find(a.Key); {
	case m == nil && h.whole:
		r.State = source.Gone
	case m == nil:
		r.State, r.Why = source.Unknown, beyond
	case a.Kind == source.Replay && a.State == source.Begun:
		r.State = source.Unknown
		r.Why = "the process or the connection ended while the message was copied. It is there as before, and a copy may be in its queue"
	}

	return r
}

// returned begins what is said of a message that no queue has taken.
const returned = "there is no queue "

// publisher publishes to queues, and waits for each message until RabbitMQ has it.
type publisher struct {
	conn    *amqp.Connection
	channel *amqp.Channel
	back    chan amqp.Return
	ended   chan *amqp.Error
}

// open makes a channel that confirms, unless there is one.
func (p *publisher) open() (err error) {
	if p.channel != nil && !p.channel.IsClosed() {
		return nil
	}

	p.channel, err = p.conn.Channel()
	if err != nil {
		return err
	}

	p.back, p.ended = p.channel.NotifyReturn(make(chan amqp.Return, 1)), p.channel.NotifyClose(make(chan *amqp.Error, 1))

	return p.channel.Confirm(false)
}

func (p *publisher) close() {
	if p.channel != nil {
		_ = p.channel.Close() // everything on it is confirmed, or in doubt
	}
}

// publish puts a message into a queue. It says why RabbitMQ did not take the message; an
// error means that it is unknown whether RabbitMQ took it.
func (p *publisher) publish(queue string, m amqp.Publishing) (problem string, err error) {
	const mandatory, immediate = true, false

	confirmation, err := p.channel.PublishWithDeferredConfirm("", queue, mandatory, immediate, m)
	if err != nil {
		return "", err
	}

	taken := confirmation.Wait()

	select {
	case r, ok := <-p.back: // it comes before the confirmation
		if ok {
			return fmt.Sprintf("%s%s: %s", returned, source.ShownName(queue), r.ReplyText), nil
		}
	default:
	}

	if taken {
		return "", nil
	}

	select {
	case e := <-p.ended:
		if e != nil && e.Server && !p.conn.IsClosed() { // the channel alone, for what it was asked to do
			return e.Error(), nil
		}
		return "", errors.Join(errors.New("the connection broke before the copy was confirmed"), asError(e))
	default:
		return "RabbitMQ did not take the message into the queue " + source.ShownName(queue), nil
	}
}

// asError keeps an error that is nil from being one of a type.
func asError(e *amqp.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// Succeeded knows of no job: RabbitMQ keeps nothing of a message that was acknowledged.
func (*Origin) Succeeded(context.Context, []source.ReplayedJob) ([]source.Success, error) {
	return nil, nil
}
