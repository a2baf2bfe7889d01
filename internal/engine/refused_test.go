package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
)

// refusing makes the real database refuse some writes, until the test lifts it.
func refusing(r *rig, name, trigger string) (lift func()) {
	r.Helper()
	l := lockDatabase(r)
	l.exec("CREATE TRIGGER " + name + " " + trigger + " BEGIN SELECT RAISE(ABORT, 'not this one'); END")
	return func() { l.exec("DROP TRIGGER " + name) }
}

// spoiled is the failure of the one among healthy jobs.
func spoiled(text string) error {
	return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "spoiled", Message: text}, Trace: "a trace"}
}

// run lets twenty healthy jobs and a spoiled one end at the same time, and the
// healthy ones that wait after them.
func runOneOfMany(r *rig, bad error) (spoiled string, healthy []string) {
	r.Helper()
	r.on("ok", func(context.Context, job.Job) error { time.Sleep(time.Second); return nil })
	r.on("bad", func(context.Context, job.Job) error { time.Sleep(time.Second); return bad })
	ids := r.enqueue(append(repeat(ofType("ok"), 5), append([]job.Job{ofType("bad")}, repeat(ofType("ok"), 15)...)...)...)
	r.start()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	return ids[5], append(ids[:5:5], ids[6:]...)
}

// A settlement that the texts of one attempt spoil is written without them, and
// holds up no other job.
func TestEngine_ASettlementThatIsRefusedIsWrittenPlainly(t *testing.T) {
	bubble(t, func(r *rig) {
		refusing(r, "no_trace", "BEFORE INSERT ON attempts WHEN NEW.trace <> ''")
		id, healthy := runOneOfMany(r, spoiled("no luck"))
		for _, ok := range healthy {
			r.want(ok, "completed", 1)
		}
		for _, a := range r.want(id, "dead_letter", 3) { // its policy goes on
			if a.Error.Type != "record_refused" || !strings.Contains(a.Error.Message, "not this one") {
				t.Errorf("attempt = %+v", a)
			}
		}
	})
}

// A settlement that cannot be written in any form is given up: it neither holds
// up others nor is tried forever, its job stays where it is, and the next start
// settles it as lost.
func TestEngine_ASettlementThatIsAlwaysRefusedIsQuarantined(t *testing.T) {
	bubble(t, func(r *rig) {
		lift := refusing(r, "no_failure", "BEFORE UPDATE ON jobs WHEN OLD.type = 'bad' AND NEW.state <> 'active'")
		id, healthy := runOneOfMany(r, spoiled("no luck"))
		for _, ok := range healthy {
			r.want(ok, "completed", 1)
		}
		time.Sleep(time.Hour) // its lease ran out long ago
		r.want(id, "active", 0)
		more := r.enqueue(ofType("ok"))[0]
		time.Sleep(5 * time.Second)
		r.want(more, "completed", 1)
		if err := r.engine.Stop(r.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		lift()
		r.on("bad", succeed)
		r.start()
		time.Sleep(10 * time.Second)
		if a := r.want(id, "completed", 2); a[0].Outcome != job.Lost {
			t.Errorf("attempts = %+v", a)
		}
	})
}

// What a dead process left behind keeps no engine from starting.
func TestEngine_StartsAlthoughAnOrphanCannotBeSettled(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		ids := r.enqueue(append([]job.Job{ofType("bad")}, repeat(ofType("ok"), 5)...)...)
		claim := job.Claim{Worker: "dead", Now: time.Now(), Lease: time.Hour, Free: map[string]int{"default": 10}}
		if _, _, err := r.store.Exchange(r.Context(), nil, claim); err != nil {
			t.Fatal(err)
		}
		refusing(r, "no_end", "BEFORE UPDATE ON jobs WHEN OLD.type = 'bad'")
		r.start()
		time.Sleep(time.Minute)
		r.want(ids[0], "active", 0)
		for _, id := range ids[1:] {
			r.want(id, "completed", 2)
		}
	})
}

// A queue from which nothing can be claimed holds up no other, and goes on once
// it can be claimed from.
func TestEngine_AQueueThatCannotBeClaimedHoldsUpNoOther(t *testing.T) {
	bubble(t, func(r *rig) {
		lift := refusing(r, "no_claim", "BEFORE UPDATE ON jobs WHEN OLD.type = 'bad' AND NEW.state = 'active'")
		r.on("ok", succeed)
		r.on("bad", succeed)
		bad := ofType("bad")
		bad.Queue = "broken"
		ids := r.enqueue(append([]job.Job{bad}, repeat(ofType("ok"), 20)...)...)
		r.start()
		time.Sleep(10 * time.Second)
		for _, id := range ids[1:] {
			r.want(id, "completed", 1)
		}
		r.want(ids[0], "available", 0)
		lift()
		time.Sleep(2 * time.Minute)
		r.want(ids[0], "completed", 1)
	})
}

// A lease that cannot be extended takes no other with it.
func TestEngine_ALeaseThatCannotBeExtendedHoldsUpNoOther(t *testing.T) {
	bubble(t, func(r *rig) {
		refusing(r, "no_beat", "BEFORE UPDATE ON jobs WHEN OLD.type = 'bad' AND NEW.lease_until <> OLD.lease_until AND OLD.state = 'active'")
		long := func(context.Context, job.Job) error { time.Sleep(3 * time.Minute); return nil }
		r.on("ok", long)
		r.on("bad", long)
		ids := r.enqueue(append([]job.Job{ofType("bad")}, repeat(ofType("ok"), 5)...)...)
		r.start()
		time.Sleep(2 * time.Minute)
		for _, id := range ids[1:] {
			if until := r.detail(id).Job.LeaseUntil; !until.After(time.Now()) {
				t.Errorf("the lease of a healthy job ran out at %v", until)
			}
		}
		time.Sleep(2 * time.Minute)
		for _, id := range ids {
			r.want(id, "completed", 1)
		}
	})
}
