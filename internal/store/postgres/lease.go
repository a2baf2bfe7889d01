package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/fault"
	"redrive/internal/pause"
	"redrive/internal/store/health"
)

// The lease of the process that works on the database. A process that dies is followed by
// another one after at most leaseLength; one that stops gives the lease back.
const (
	leaseLength = 8 * time.Second
	renewEvery  = leaseLength / 4

	// A process ends when it was not able to renew its lease for so long: what it has begun has to
	// have ended when another process can take the lease.
	longestApart = leaseLength - leaseLength/6
)

// lease lets one process at a time work on the database. Every commit checks it (see [conn]), so
// that a process which slept through the end of its lease writes nothing.
//
// The server says until when a lease lasts, and the process measures by its own clock how long
// ago it was renewed: from before the renewal was sent, so that it never takes its lease for
// longer than the server does. The two clocks are not compared.
type lease struct {
	database string
	node     string // the id of this start of the program
	name     string // machine and process
	health   *health.Health
	fault    func(error) error
	sockets  *sockets // of the connections with which this process works

	desk *desk

	// Commits that the server has acknowledged. A server that knows of fewer has lost some: it is a
	// replica that lagged behind and has taken over, or it failed without having flushed its log.
	acknowledged atomic.Int64

	begun   time.Time
	renewed atomic.Int64          // after begun: when the newest renewal was sent that succeeded
	trouble atomic.Pointer[error] // of the newest renewal that failed

	running context.Context // until the lease is given back
	stop    context.CancelFunc
	over    context.Context // until this process must not go on
	endOver context.CancelFunc
	ended   sync.WaitGroup
	closing sync.Once
}

func newLease(e *engine) *lease {
	l := &lease{
		database: e.name, node: e.node, health: e.health, fault: e.Fault, sockets: e.sockets,
		desk: newDesk(e.config, &e.hosts), begun: time.Now(),
	}
	l.desk.writes = true
	l.running, l.stop = context.WithCancel(context.Background())
	l.over, l.endOver = context.WithCancel(context.Background())

	return l
}

// begin renews the lease from now on, and watches whether that succeeds.
func (l *lease) begin() {
	l.ended.Go(l.renew)
	l.ended.Go(l.watch)
}

// renew renews the lease until it is given back.
func (l *lease) renew() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()

	for {
		select {
		case <-l.running.Done():
			return
		case <-tick.C:
			l.renewOnce()
		}
	}
}

// renewOnce renews the lease, unless it is over. It ends this process if another one has the
// lease, or if the server has lost commits.
func (l *lease) renewOnce() {
	const renew = `WITH renewed AS (
			UPDATE leases SET until = now() + make_interval(secs => $2) WHERE name = 'main' AND holder = $1 RETURNING 1
		) SELECT (SELECT count(*) FROM renewed), coalesce((SELECT commits FROM nodes WHERE id = $1), 0)`

	sent, acknowledged := l.now(), l.acknowledged.Load()
	if l.check() != nil {
		return
	}

	got, err := l.desk.run(l.running, renew, l.node, leaseLength.Seconds())
	if err != nil {
		l.trouble.Store(&err)
		return // the watch looks for how long
	}

	commits, _ := strconv.ParseInt(got.text(1), 10, 64) // a BIGINT

	switch {
	case got.text(0) == "0":
		_ = l.taken()
	case commits < acknowledged:
		_ = l.forgotten(acknowledged, commits)
	default:
		l.renewed.Store(int64(sent))
	}
}

// now is how long the lease has been looked after.
func (l *lease) now() time.Duration { return time.Since(l.begun) }

// left is how long this process may still work unless the lease is renewed.
func (l *lease) left() time.Duration { return time.Duration(l.renewed.Load()) + longestApart - l.now() }

// watch ends this process when the lease was not renewed for too long.
func (l *lease) watch() {
	for l.check() == nil {
		if !pause.For(l.running, l.left()) {
			return
		}
	}
}

// check returns why this process must not go on, if its lease is over. Everything that writes
// asks first: a process that was frozen can be woken here before the watch is.
func (l *lease) check() error {
	if l.left() > 0 {
		return nil
	}

	why := errors.New("this process was frozen, or its server is silent")
	if trouble := l.trouble.Load(); trouble != nil {
		why = *trouble
	}

	return l.lose(fault.ErrTakenOver, why, "the lease of the database %s could not be renewed for so long that "+
		"another process may work on it by now; restart the program, which then waits for its turn")
}

// isTaken reports whether another process has the lease, as far as the server says.
func (l *lease) isTaken() bool {
	const held = `SELECT count(*) FROM leases WHERE name = 'main' AND holder = $1`

	got, err := l.desk.run(l.running, held, l.node)

	return err == nil && got.text(0) == "0"
}

// taken ends this process because another one has the lease.
func (l *lease) taken() error {
	return l.lose(fault.ErrTakenOver, errors.New("this one did not renew its lease for a while"),
		"another process works on the database %s by now; restart the program, which then waits for its turn")
}

// forgotten ends this process because what it remembers is not in the database.
func (l *lease) forgotten(acknowledged, commits int64) error {
	return l.lose(fault.ErrBroken, fmt.Errorf("it acknowledged %d commits of this process and has %d", acknowledged, commits),
		"the server of the database %s has lost commits that it had acknowledged; restart the program, which remembers what is not there")
}

// lose reports that this process must not go on, and ends what waits for the server.
func (l *lease) lose(kind, why error, words string) error {
	err := l.health.Report(&health.Fault{
		Kind: kind, Words: fmt.Sprintf(words, l.database), Err: why, Where: slog.String("database", l.database),
	})
	l.sockets.end()
	l.endOver()

	return err
}

// closePatience is how long the server may be silent once the store is being closed.
const closePatience = 3 * time.Second

// endsWith ends the connections of a silent server after the end of a context: the writer's,
// which is the first to end when the store is closed. While the lease is renewed, the server
// answers, and what is under way may take the time of a stop.
func (l *lease) endsWith(ctx context.Context) {
	l.closing.Do(func() {
		context.AfterFunc(ctx, func() {
			l.sockets.hasten()

			before := int64(-1)
			for before != l.renewed.Load() {
				before = l.renewed.Load()

				if !pause.For(l.running, closePatience) {
					return
				}
			}

			l.sockets.end()
		})
	})
}

// giveBack ends the renewal, and lets another process take the lease at once.
func (l *lease) giveBack() error {
	const back = `UPDATE leases SET holder = '', until = now() WHERE name = 'main' AND holder = $1`

	l.stop()
	l.ended.Wait()

	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()

	_, err := l.desk.run(ctx, back, l.node)
	if err == nil {
		_, err = l.desk.run(ctx, forgetNode, l.node)
	}

	if err != nil {
		err = fmt.Errorf("give the lease of the database back: %w", err)
	}

	return errors.Join(err, l.desk.close())
}

// announce leaves word of where this process answers requests.
func (l *lease) announce(url string) error {
	const note = `UPDATE nodes SET url = $2 WHERE id = $1`

	_, err := l.desk.run(context.Background(), note, l.node, url)

	return err
}
