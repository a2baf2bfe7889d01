package operations

import (
	"fmt"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// judge decides which items cannot be processed, because their jobs are not as the operation needs
// them, and sets the code and the reason of these. It reads the jobs of items that have none yet.
func (p *Projection) judge(t *db.Tx, o operation.Operation, items []workItem) error {
	if err := p.readJobs(t, items); err != nil {
		return err
	}

	late := map[int64]*workItem{} // items whose runs were replayed already, by the numbers of their jobs
	for i := range items {
		it := &items[i]
		if it.job == nil {
			it.code, it.why = operation.SkipGone, whyGone(it.id)
			continue
		}

		it.code = o.Kind.Unfit(*it.job, it.run)
		it.why = whyUnfit(it.code, *it.job, it.run)
		if refused := p.acts.CheckAct(*it.job, o.Kind); refused != "" && it.code == "" {
			it.code, it.why = operation.SkipRefused, refused
		}

		if it.code == operation.SkipReplayed {
			late[it.seq] = it
		}
	}

	return p.whoWasFirst(t, late)
}

// readJobs sets the jobs of items that have none, as they are in this transaction. An item whose
// job does not exist still has none afterwards.
func (p *Projection) readJobs(t *db.Tx, items []workItem) error {
	unknown := make([]int64, 0, len(items))
	for _, it := range items {
		if it.job == nil {
			unknown = append(unknown, it.seq)
		}
	}

	if len(unknown) == 0 {
		return nil
	}

	jobs, err := p.policies.ToActOn(t, unknown)
	bySeq := make(map[int64]*job.Job, len(jobs))
	for i := range jobs {
		bySeq[jobs[i].Seq] = &jobs[i]
	}

	for i := range items {
		if it := &items[i]; it.job == nil {
			it.job = bySeq[it.seq]
		}
	}

	return err
}

// whyGone says in words that a job does not exist. id is the id that the request named, if any.
func whyGone(id string) string {
	if id == "" {
		return "the job was removed"
	}
	return "there is no job " + id
}

// whyUnfit says in words why a job is skipped.
func whyUnfit(code operation.Skip, j job.Job, run int) string {
	switch code {
	case "":
		return ""
	case operation.SkipReplayed:
		return fmt.Sprintf("replayed already, run %d", j.Run)
	case operation.SkipNoRun:
		return fmt.Sprintf("the job never had run %d; it is %s in run %d", run, j.Status(), j.Run)
	case operation.Skip(job.StatusTrashed):
		if name := j.Source; name != "" {
			return "discarded at " + name + ", cannot be restored"
		}
		return "discarded, in the trash"
	case operation.Skip(job.Completed):
		return fmt.Sprintf("run %d succeeded", j.Run)
	}

	return fmt.Sprintf("%s, run %d", j.Status(), j.Run)
}

// whoWasFirst sets the reason of items whose runs were replayed already: by whom, and by which
// other operation.
func (p *Projection) whoWasFirst(t *db.Tx, late map[int64]*workItem) error {
	const query = `SELECT r.job_seq, r.by, r.operation_id FROM json_each($1) AS e
		JOIN replays AS r ON r.job_seq = CAST(e.value ->> 0 AS BIGINT) AND r.run = CAST(e.value ->> 1 AS BIGINT)`

	if len(late) == 0 {
		return nil
	}

	rows := make([][2]int64, 0, len(late))
	for seq, it := range late {
		rows = append(rows, [2]int64{seq, int64(it.run)})
	}

	type replay struct {
		seq, other int64
		by         string
	}
	all, err := db.All(t, query, func(r *replay) []any { return []any{&r.seq, &r.by, &r.other} }, db.Rows(rows))
	for _, r := range all {
		it := late[r.seq]
		it.why, it.other = fmt.Sprintf("replayed already by %s, run %d", audit.Name(r.by), it.run+1), r.other
	}

	return err
}
