package postgres

import (
	"net"
	"strings"
	"testing"
	"time"
)

// deadlined is a connection that counts the deadlines that it was given.
type deadlined struct {
	net.Conn
	given int
}

func (d *deadlined) SetDeadline(time.Time) error {
	d.given++
	return nil
}

// A process that is told to stop and then closes its store asks twice for haste. What waits
// already does not get more time by the second one.
func TestHasten_GivesNoMoreTime(t *testing.T) {
	all := newSockets(silence, silenceAtStop)
	waiting := &deadlined{}
	all.open[&socket{Conn: waiting, of: all}] = true

	all.hasten()
	all.hasten()

	if waiting.given != 1 {
		t.Errorf("what waits has got a deadline %d times, want once", waiting.given)
	}
}

// A statement that waits for a lock is ended by the server, and not its connection by this program,
// also while the process stops.
func TestHasten_WaitsForLocks(t *testing.T) {
	if !strings.Contains(begin, "'lock_timeout', '"+locksWait.String()+"'") {
		t.Errorf("statements do not wait for a lock for %v: %s", locksWait, begin)
	}

	if silenceAtStop <= locksWait {
		t.Errorf("a connection waits for %v, and a lock for %v", silenceAtStop, locksWait)
	}
}
