package storetest

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/source"
)

// ownNames are behaviours of records whose queue has another name at its source than here.
var ownNames = []func(*kit){
	Mirror_TheOwnNameOfAQueueIsKept, Mirror_TwoQueuesCanHaveOneNameHere, Source_AnActKnowsTheOwnNameOfItsQueue,
}

// inQueue is a record of a queue, with metadata.
func (k *kit) inQueue(key, queue, meta string) source.Record {
	r := k.deadAt(key)
	r.Queue = queue
	if meta != "" {
		r.Meta = []byte(meta)
	}

	return r
}

// jobsByKey are the jobs of the source with their payloads and metadata, by the keys of
// their records.
func (k *kit) jobsByKey() map[string]job.Job {
	k.Helper()

	all := map[string]job.Job{}
	for _, j := range k.all(filter.Filter{Source: "shop"}, 100) {
		d := k.detail(j.ID)
		all[d.Mirrored.Key] = d.Job
	}

	return all
}

// Mirror_TheOwnNameOfAQueueIsKept: in the metadata, under a name that these do not have, and
// beside everything else that they say. Where the queue of the job tells it, they stay as
// they are.
func Mirror_TheOwnNameOfAQueueIsKept(k *kit) {
	records := []source.Record{
		k.inQueue("plain", "orders", ""), k.inQueue("plain with more", "orders", `{ "queue": "x", "n": 12345678901234567890 }`),
		k.inQueue("odd", "{default}", ""), k.inQueue("odd with more", "{default}", `{"n": 12345678901234567890, "f": 1.0}`),
		k.inQueue("odd with a queue", "{default}", `{"queue":"x","source_queue":["y"]}`), k.inQueue("none", "", ""),
	}
	want := map[string][]string{
		"plain": {"orders@shop", "", "orders"}, "plain with more": {"orders@shop", `{ "queue": "x", "n": 12345678901234567890 }`, "orders"},
		"odd":              {"default_@shop", `{"queue":"{default}"}`, "{default}"},
		"odd with more":    {"default_@shop", `{"f":1.0,"n":12345678901234567890,"queue":"{default}"}`, "{default}"},
		"odd with a queue": {"default_@shop", `{"queue":"x","source_queue":["y"],"source_source_queue":"{default}"}`, "{default}"},
		"none":             {"default@shop", "", "default"},
	}

	k.mirror(len(records), records...)
	k.restart()
	k.mirror(0, records...)

	jobs := k.jobsByKey()
	k.same("jobs", len(jobs), len(want))

	for key, w := range want {
		j := jobs[key]
		k.same(key, []string{j.Queue, string(j.Meta), source.QueueAtSource(j.Queue, j.Meta)}, w)
	}
}

// Mirror_TwoQueuesCanHaveOneNameHere: each job knows from which of them it came, also when it
// died again, and after it was replayed with another payload.
func Mirror_TwoQueuesCanHaveOneNameHere(k *kit) {
	records := []source.Record{k.inQueue("1", "{a}", ""), k.inQueue("2", "[a]", ""), k.inQueue("3", "a_", "")}
	k.mirror(3, records...)
	k.same("jobs in one queue", len(k.all(filter.Filter{Queue: "a_@shop"}, 10)), 3)

	_, err := k.edited(k.jobsByKey()["1"], `{"order":8}`, time.Time{})
	k.check(err)
	k.answer(k.asked(1)[0], source.Done, "")
	k.pass(time.Minute)

	for i := range records {
		records[i].VersionToken, records[i].FailedAt = "2", k.now
	}

	k.mirror(3, records...)

	jobs := k.jobsByKey()
	for _, r := range records {
		j := jobs[r.Key]
		k.same("the queue of "+r.Key, []any{source.QueueAtSource(j.Queue, j.Meta), j.Run}, []any{r.Queue, 2})
	}
}

// Source_AnActKnowsTheOwnNameOfItsQueue: when it is taken, and when it is looked up because
// its answer was lost.
func Source_AnActKnowsTheOwnNameOfItsQueue(k *kit) {
	records := []source.Record{k.inQueue("1", "{a}", `{"queue":"x"}`), k.inQueue("2", "orders", "")}
	k.mirror(2, records...)

	for _, j := range k.jobsByKey() {
		_, err := k.Replay(k.ctx, k.now, j.ID, 1, eve)
		k.check(err)
	}

	own := map[string]string{"1": "{a}", "2": "orders"}
	for _, act := range k.asked(2) {
		k.same("the queue of the act on "+act.Key, source.QueueAtSource(act.Queue, act.Meta), own[act.Key])
	}

	k.restart()
	begun, err := k.Sources.Begun(k.ctx, "shop", 10)
	k.check(err)
	k.same("begun", len(begun), 2)

	for _, act := range begun {
		k.same("the queue of the begun act on "+act.Key, source.QueueAtSource(act.Queue, act.Meta), own[act.Key])
	}
}
