package job

// Totals are the counters of the product, defined once: pages, websocket, API
// and /metrics show these numbers under these names. They rise in the
// transaction of the change that they count.
//
// Always: Failed = Requeued + FailedPermanently.
type Totals struct {
	Succeeded         int64 `json:"jobs_succeeded"`          // a cycle succeeded
	Failed            int64 `json:"jobs_failed"`             // a cycle failed, retried or not
	Requeued          int64 `json:"jobs_requeued"`           // a failed cycle put the job back
	FailedPermanently int64 `json:"jobs_failed_permanently"` // a failed cycle was the last of its run
	DLQFailed         int64 `json:"jobs_dlq_failed"`         // a dead letter was asked for and not accepted
	Replayed          int64 `json:"jobs_replayed"`           // a person or an operation replayed a job
}

// Add returns the sum of two totals.
func (t Totals) Add(u Totals) Totals {
	return Totals{
		t.Succeeded + u.Succeeded, t.Failed + u.Failed, t.Requeued + u.Requeued,
		t.FailedPermanently + u.FailedPermanently, t.DLQFailed + u.DLQFailed, t.Replayed + u.Replayed,
	}
}

// Counter is one of the six totals with its name.
type Counter struct {
	Name  string
	Value int64
}

// Counters lists the totals by name, in the order in which pages show them.
func (t Totals) Counters() []Counter {
	return []Counter{
		{"jobs_failed", t.Failed},
		{"jobs_requeued", t.Requeued},
		{"jobs_failed_permanently", t.FailedPermanently},
		{"jobs_dlq_failed", t.DLQFailed},
		{"jobs_succeeded", t.Succeeded},
		{"jobs_replayed", t.Replayed},
	}
}

// Depths counts jobs by status. The views dead_letter, dlq_failed, held and
// trashed are counted beside the state that contains them, so the states alone add up to
// all jobs.
type Depths map[Status]int64

// Jobs is the number of jobs in all states.
func (d Depths) Jobs() int64 {
	var n int64
	for _, s := range States() {
		n += d[Status(s)]
	}
	return n
}

// Snapshot is what live pages show: absolute totals and depths as of commit
// Seq, which rises by one at least with each commit that changed something.
type Snapshot struct {
	Seq    int64
	Totals Totals
	Depths Depths // over all queues

	Operations int64 // on many jobs that are under way
	OpenGroups int64 // error groups that nobody has dealt with
}
