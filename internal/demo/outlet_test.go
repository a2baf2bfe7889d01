package demo_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/source"
	"redrive/internal/source/sqlsource"
)

// outlet is the demo's outlet, with Redrive's view of it and its database.
type outlet struct {
	*demo.World
	*demo.Outlet
	origin *sqlsource.Origin
	db     *sql.DB
}

func openOutlet(t *testing.T) outlet {
	t.Helper()
	file := filepath.Join(t.TempDir(), "outlet.db")
	settings, err := config.Parse("demo", demo.Config(file))
	if err != nil {
		t.Fatal(err)
	}
	w := demo.New(1, settings)
	o, err := w.OpenOutlet(t.Context(), file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	attached := settings.Sources()[0]
	origin, err := sqlsource.Open(t.Context(), attached.URL.Reveal(), attached.Preset, attached.Settings)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	return outlet{w, o, origin, db}
}

func (o outlet) close(t *testing.T) {
	for _, c := range []interface{ Close() error }{o.db, o.origin, o.Outlet} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// work lets the outlet work for a time.
func (o outlet) work(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	if err := o.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// dead is what Redrive sees there, the newest first.
func (o outlet) dead(t *testing.T) []source.Record {
	t.Helper()
	page, err := o.origin.Scan(t.Context(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	page.Complete(page.Records)
	return page.Records
}

// waiting is how often the outlet has a job to do.
func (o outlet) waiting(t *testing.T, uuid string) (n int) {
	t.Helper()
	if err := o.db.QueryRowContext(t.Context(), `SELECT count(*) FROM jobs WHERE instr(payload, ?) > 0`, uuid).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// replay asks the outlet to run a record again, as Redrive does.
func (o outlet) replay(t *testing.T, r source.Record) {
	t.Helper()
	results, err := o.origin.Act(t.Context(), []source.Act{{ID: 1, Kind: source.Replay, Mode: source.Once, Record: r}})
	if err != nil || len(results) != 1 || results[0].State != source.Done {
		t.Fatalf("the replay ended as %+v, %v", results, err)
	}
}

// What the outlet keeps is what the preset of Laravel reads: its orders fail while the
// warehouse is away, a replay fails again under the same uuid, and one succeeds when the
// warehouse is back.
func TestOutlet_IsASourceThatFailsAndMends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOutlet(t)
		defer o.close(t)
		before := o.dead(t)
		r := before[0]
		if len(before) < 10 || r.Type != `App\Jobs\ReserveStock` || r.Queue != "orders" || r.Limit != 2 ||
			r.Error.Type != `App\Warehouse\Unavailable` || r.Trace == "" || len(r.Warnings) > 0 {
			t.Fatalf("%d are dead at first, the newest as %+v", len(before), r)
		}
		if age := time.Since(before[len(before)-1].FailedAt); age > time.Hour || age < 10*time.Minute {
			t.Errorf("the first failure is %v old", age)
		}
		o.work(t, time.Minute)
		if n := len(o.dead(t)); n < len(before)+10 {
			t.Errorf("%d are dead after a minute without a warehouse, before it %d", n, len(before))
		}
		o.replay(t, r)
		o.work(t, 10*time.Second)
		again := o.find(t, r.Key)
		if again == nil || again.VersionToken == r.VersionToken || !again.FailedAt.After(r.FailedAt) {
			t.Fatalf("the replay left %+v", again)
		}
		if err := o.SetFault("warehouse", false); err != nil {
			t.Fatal(err)
		}
		o.work(t, 10*time.Second)
		o.replay(t, *again)
		left := len(o.dead(t))
		o.work(t, time.Minute)
		if n, waits := len(o.dead(t)), o.waiting(t, r.Key); n != left || o.find(t, r.Key) != nil || waits > 0 {
			t.Errorf("with a warehouse, %d are dead of %d, and the replayed job waits %d times", n, left, waits)
		}
	})
}

// find returns the dead record with a key; nil when there is none.
func (o outlet) find(t *testing.T, key string) *source.Record {
	t.Helper()
	for _, r := range o.dead(t) {
		if r.Key == key {
			return &r
		}
	}
	return nil
}
