package templates_test

import (
	"maps"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/web/templates/adminpage"
	"redrive/web/templates/listpage"
)

// auditEntries are what three people did on that afternoon, the newest first.
func auditEntries() []audit.Entry {
	ana := audit.Actor{Name: "ana", Address: "192.0.2.7"}
	acts := []audit.Entry{
		{Actor: ana, Action: "job.discard", Subject: id(7), Count: 1, Before: "dead letter, run 1", After: "discarded, run 1"},
		{Actor: audit.Actor{Name: "sam", Address: "192.0.2.9"}, Action: audit.Reveal, Subject: id(7), Count: 1, After: "dead letter, run 1"},
		{Actor: ana, Action: "operation.create", Subject: "3", Filter: "queue:orders reason:attempts_exhausted", Count: 1180},
		{Actor: audit.Actor{Name: "token deploy", Address: "198.51.100.4"}, Action: "queue.pause", Subject: "payments", Count: 1},
	}
	for i := range acts {
		acts[i].Seq, acts[i].At = int64(4711-i), now.Add(-time.Duration(i*i*40+1)*time.Minute)
		acts[i].Hash = []byte{0xca, 0xfe, byte(i), 1, 2, 3, 4, 5}
	}
	return acts
}

func trashStates(all map[string]page) {
	f := frame("trash", "Trash")
	v := listpage.Trash{Frame: f, Filter: filter.Filter{Status: job.StatusTrashed}, Keeps: 7 * 24 * time.Hour, Was: map[int64]history.Trashed{}}
	all["trash-empty"] = v
	full := v
	full.Was = maps.Clone(v.Was)
	for n := range 4 {
		j := failure(n, job.StatusDeadLetter)
		was := history.Trashed{At: now.Add(-time.Duration(n*n*19+1) * time.Hour), By: "ana", State: j.State, DeadLetter: j.DeadLetter, Reason: j.Reason}
		j.DeadLetter = job.DeadLetterTrashed
		full.List.Jobs, full.Was[j.Seq] = append(full.List.Jobs, j), was
	}
	all["trash"] = full
	viewer := full
	viewer.Role, viewer.User, viewer.Keeps = access.Viewer, "vic", 0
	all["trash-viewer"] = viewer
	none := v
	none.Filter.Queue = "orders"
	all["trash-no-match"] = none
	undone := full
	c := full.List.Jobs[0].Changed()
	undone.Acted, undone.Here = &c, "/trash"
	all["trash-undo"] = undone
}

func auditStates(all map[string]page) {
	log := adminpage.Audit{Frame: frame("audit", "Audit")}
	all["audit-empty"] = log
	log.List = audit.List{Entries: auditEntries(), Next: 4708}
	all["audit"] = log
	own := log
	own.Own, own.Slow, own.Filter = true, true, audit.Filter{Actor: "ana", Action: "job.*"}
	all["audit-own"] = own
	wrong := adminpage.Audit{Frame: log.Frame, Errors: map[string]string{"from": `"yesterday" is not a time such as 2026-03-12T14:02:11Z`}}
	all["audit-refused"] = wrong
}
