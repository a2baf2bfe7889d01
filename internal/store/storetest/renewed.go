package storetest

import (
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/source"
)

// renewing are the behaviours of records that are not what they were when they die again.
var renewing = []func(*kit){
	Renewed_AChangedRecordIsShownAsItIs, Renewed_AnotherJobUnderTheKeyIsShownAsItIs, Renewed_AReplayedRecordIsShownAsItIs,
	Renewed_ARecordInAnotherQueueIsShownThere, Renewed_AReplayedRecordInAnotherQueueIsShownThere,
	Renewed_AnEditedReplayKeepsTheFirstPayload, Renewed_TheSamePayloadIsNoChange,
}

// Renewed_AChangedRecordIsShownAsItIs: a person repaired the payload at the source, and the job
// failed again. The previous run keeps the payload that it had.
func Renewed_AChangedRecordIsShownAsItIs(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	r.VersionToken, r.Payload = "2", []byte(`{"order":8}`)
	k.mirror(1, r)

	d := k.detail(j.ID)
	k.same("the job", []any{d.Job.Run, string(d.Job.Payload)}, []any{2, `{"order":8}`})
	k.same("the run before", string(k.earlier(d).Body.Payload), `{"order":7}`)
}

// Renewed_AnotherJobUnderTheKeyIsShownAsItIs: the source counts its keys from 1 again. The job
// is found by the type that it has, and no longer by the one that it had.
func Renewed_AnotherJobUnderTheKeyIsShownAsItIs(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	r.VersionToken, r.Type, r.Payload = "2", "email", []byte(`{"to":"ana"}`)
	k.mirror(1, r)

	got := k.job(j.ID)
	k.same("the job", []any{got.Type, string(got.Payload)}, []any{"email", `{"to":"ana"}`})

	for typ, want := range map[string]int{"email": 1, "charge": 0} {
		k.same("dead letters of type "+typ, len(k.all(filter.Filter{Status: job.StatusDeadLetter, Type: typ}, 10)), want)
	}

	k.same("dead letters", k.Snapshot().Depths[job.StatusDeadLetter], int64(1))
	k.same("the run before", k.earlier(k.detail(j.ID)).Type, "charge")
}

// Renewed_AReplayedRecordIsShownAsItIs: the payload was changed between a replay and the death.
func Renewed_AReplayedRecordIsShownAsItIs(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Done, "")

	r.VersionToken, r.Payload = "2", []byte(`{"order":8}`)
	k.mirror(1, r)

	d := k.detail(j.ID)
	k.same("the job", []any{d.Job.Run, string(d.Job.Payload)}, []any{2, `{"order":8}`})
	k.same("the run before", string(k.earlier(d).Body.Payload), `{"order":7}`)
}

// Renewed_AnEditedReplayKeepsTheFirstPayload: also when the source writes the new one in other
// words.
func Renewed_AnEditedReplayKeepsTheFirstPayload(k *kit) {
	r := k.deadAt("7")
	j := k.job(k.mirror(1, r)[0].ID)
	edit := job.Edit{Body: &job.Body{Type: j.Type, Meta: j.Meta, Payload: []byte(`{"order": 8}`)}}
	_, err := k.ReplayWith(k.ctx, k.now, j.ID, 1, edit, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Done, "")

	r.VersionToken, r.Payload = "2", []byte(`{"order":8}`)
	k.mirror(1, r)

	d := k.detail(j.ID)
	k.same("the job", string(d.Job.Payload), `{"order":8}`)
	k.same("the run before", string(k.earlier(d).Body.Payload), `{"order":7}`)
}

// Renewed_TheSamePayloadIsNoChange: what nothing has changed is not told as a change.
func Renewed_TheSamePayloadIsNoChange(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	r.VersionToken = "2"
	k.mirror(1, r)
	k.same("the run before", k.detail(j.ID).Replays[0].Earlier == nil, true)
}

// Renewed_ARecordInAnotherQueueIsShownThere: which is where a replay takes it.
func Renewed_ARecordInAnotherQueueIsShownThere(k *kit) {
	r := k.deadAt("7")
	k.mirror(1, r)
	r.VersionToken, r.Queue = "2", "mail"
	k.mirror(1, r)
	k.inQueueOnly("mail@shop", "orders@shop")
}

// Renewed_AReplayedRecordInAnotherQueueIsShownThere: it was moved between a replay and the death.
func Renewed_AReplayedRecordInAnotherQueueIsShownThere(k *kit) {
	r := k.deadAt("7")
	j := k.mirror(1, r)[0]
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.answer(k.asked(1)[0], source.Done, "")

	r.VersionToken, r.Queue = "2", "mail"
	k.mirror(1, r)
	k.inQueueOnly("mail@shop", "orders@shop")
}

// inQueueOnly checks that the one dead letter is listed and counted in one queue and not in
// another, and that its first run was in the other.
func (k *kit) inQueueOnly(queue, other string) {
	k.Helper()

	for name, want := range map[string]int{queue: 1, other: 0} {
		f := filter.Filter{Status: job.StatusDeadLetter, Queue: name}
		k.same("listed in "+name, len(k.all(f, 10)), want)
		facets, err := k.Counters.Facets(k.ctx, f)
		k.check(err)
		k.same("counted in "+name, len(facets.Types), want)
	}

	for _, j := range k.all(filter.Filter{Queue: queue}, 10) {
		d := k.detail(j.ID)
		k.same("the run, and the queue of the run before", []any{d.Job.Run, k.earlier(d).Queue}, []any{2, other})
	}
}

// earlier is what the first run of a job had, if the second one has something else.
func (k *kit) earlier(d history.Detail) *history.Earlier {
	k.Helper()

	if len(d.Replays) == 0 || d.Replays[0].Earlier == nil || d.Replays[0].Earlier.Body == nil && d.Replays[0].Earlier.Queue == d.Job.Queue {
		k.Fatalf("nothing is known of what the first run had: %+v", d.Replays)
	}

	return d.Replays[0].Earlier
}
