package templates_test

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/source"
	presets "redrive/internal/source/preset"
	"redrive/web/templates"
	"redrive/web/templates/jobpage"
	"redrive/web/templates/sourcepage"
)

// shop is a source that fares well.
func shop() source.Health {
	p := presets.All()["river"]
	return source.Health{
		Name: "shop", Preset: p.Name, Profile: p.Profile, Allow: []source.Kind{source.Replay, source.Discard}, Every: 5 * time.Second,
		Report: source.Report{Version: "7", Tells: true, Warnings: []string{"No index fits the list of dead records, so each look reads the whole table."}}, Ready: true, Reading: 1204,
		Polled: now.Add(-3 * time.Second), Took: 12 * time.Millisecond, Next: now.Add(2 * time.Second),
	}
}

// quarantined is a source with records that cannot be taken over, and that is looked at late.
func quarantined() source.Health {
	h := shop()
	h.Polled, h.Took, h.Next = now.Add(-40*time.Second), 7*time.Second, now.Add(30*time.Second)
	h.Name, h.Beyond = "orders", 1200
	for i, why := range []string{
		source.TooLarge("", 20_000_000).Why,
		"It cannot be kept: the name of a queue is too long.",
		"Its key has 20 kB, which is larger than the limit of 1 kB.",
	} {
		h.Quarantined = append(h.Quarantined, source.Quarantined{
			Refusal: source.Refusal{Key: []string{"1180", "x'00ff'", "a-name-without-an-end-0123456789-0123456789-0123456789-0123456789-0123456789"}[i], Why: why},
			Since:   now.Add(-time.Duration(i+1) * time.Hour),
		})
	}
	return h
}

// legacy is one that does not answer, and may only be read.
func legacy() source.Health {
	p := presets.All()["laravel"]
	return source.Health{
		Name: "legacy", Preset: p.Name, Profile: p.Profile, Every: 5 * time.Second, Ready: true, Polled: now.Add(-12 * time.Minute),
		Problem: "connect: dial tcp 10.1.2.3:5432: connection refused", Since: now.Add(-11 * time.Minute), Next: now.Add(40 * time.Second),
	}
}

// awayOverview is the overview while sources are out of date, and no dead letter is known.
func awayOverview(outdated ...source.Health) templates.Overview {
	f := quiet("overview", "Overview")
	f.Outdated = outdated
	return templates.Overview{Frame: f, LastHour: hour(10, 0, 1)[:50], Queues: queueInfos()}
}

func sourceStates(all map[string]page) {
	queues := []filter.NameCount{{Name: "orders@shop", Count: 1180}, {Name: "mail@shop", Count: 24}}
	first := legacy()
	first.Problem, first.Ready, first.Polled, first.Reading, first.Name = "", false, time.Time{}, 48_500, "fresh"
	f := frame("sources", "Sources")
	all["sources-none"] = sourcepage.List{Frame: f}
	all["sources-unattached"] = sourcepage.List{Frame: f, Unattached: []source.Unattached{{Name: "old-shop", DeadLetters: 4120, Waiting: 12}, {Name: "legacy", DeadLetters: 3}}}
	f.Outdated = []source.Health{legacy()}
	all["sources"] = sourcepage.List{Frame: f, Sources: []sourcepage.Source{
		{Health: first}, {Health: legacy(), Queues: []filter.NameCount{{Name: "default@legacy", Count: 3}}}, {Health: shop(), Queues: queues, Returning: 2, Returned: 12},
		{Health: quarantined(), Queues: queues},
	}}
	act := func(n int64, kind source.Kind, state source.State, why string) source.Act {
		a := source.Act{ID: n, Kind: kind, State: state, JobID: id(int(n)), Run: 2, AskedAt: now.Add(-time.Duration(n) * time.Minute), By: "ana", Why: why}
		a.Type, a.Queue = "charge", "orders@shop"
		return a
	}
	all["source"] = sourcepage.View{
		Frame: frame("sources", "shop"), Source: sourcepage.Source{Health: shop(), Queues: queues, Returning: 2, Returned: 12},
		Acts: []source.Act{
			act(9, source.Replay, source.Unknown, "the process ended while the source was told, and the record is no longer there"),
			act(1, source.Replay, source.Begun, ""), act(2, source.Replay, source.Done, ""), act(3, source.Discard, source.Done, ""),
			act(4, source.Replay, source.Gone, ""), act(5, source.Replay, source.Changed, "it has died again since"),
			act(6, source.Replay, source.Replaced, "duplicate key value violates unique constraint"), act(7, source.Discard, source.Refused, "permission denied for table river_job"),
		},
	}
	f.Title, f.AboutSource = "legacy", "legacy"
	all["source-away"] = sourcepage.View{Frame: f, Source: sourcepage.Source{Health: legacy()}}
	full := shop()
	full.Problem, full.Own, full.Since = "the disk is full", true, now.Add(-time.Minute)
	all["source-own-fault"] = sourcepage.View{Frame: frame("sources", "shop"), Source: sourcepage.Source{Health: full, Queues: queues}}
	moved := shop()
	moved.Moved, moved.Own, moved.Since = true, true, now.Add(-time.Minute)
	moved.Problem = `its jobs are from db1.internal/shop, table failed_jobs, and its URL now names db2.internal/shop, table failed_jobs. ` +
		`Attach what is there under another name, or name the old place in the URL again. ` +
		`If it is the same queue at another address, add to the source: moved_from: "db1.internal/shop, table failed_jobs"`
	all["overview-source-away"] = awayOverview(legacy())
	all["overview-source-moved"] = awayOverview(moved)
	all["overview-sources-away"] = awayOverview(legacy(), legacy(), moved, full, legacy(), legacy())
	all["source-moved"] = sourcepage.View{Frame: frame("sources", "shop"), Source: sourcepage.Source{Health: moved, Queues: queues}}
	all["source-quarantine"] = sourcepage.View{Frame: frame("sources", "orders"), Source: sourcepage.Source{Health: quarantined(), Queues: queues}}
	all["source-first"] = sourcepage.View{Frame: frame("sources", "fresh"), Source: sourcepage.Source{Health: first}}
	for name, v := range sourceJobs() {
		all[name] = v
	}
	v := editing()
	v.Job.Queue, v.Job.Source, v.Origin = "orders@queue", "queue", new(source.Health)
	*v.Origin = guarded()
	v.Form["delay"], v.Form["mode"], v.Checked, v.RunAt = "5m", "new", true, now.Add(5*time.Minute)
	all["edit-source"] = v
	v = editing()
	v.Job.Queue, v.Job.Source, v.Origin = "orders@shop", "shop", new(source.Health)
	*v.Origin = shop()
	v.Origin.Profile.Delays, v.Origin.Profile.Edits = false, false
	v.Fixed = "The payload cannot be changed at this source. A replay keeps every byte."
	all["edit-source-as-it-is"] = v
}

// silent is a job of a source that says little: neither times nor attempts, nor why it died.
func silent(v *jobpage.View) {
	j := &v.Job
	j.Queue, j.Source, j.Reason, j.Attempts, j.Policy = "orders@legacy", "legacy", retry.ReasonUnknown, 0, retry.Policy{}
	j.EnqueuedAt, j.RunAt, j.FinishedAt = time.Time{}, time.Time{}, time.Time{}
	v.Attempts[0].Number, v.Attempts[0].FinishedAt = 0, time.Time{}
	v.DeadLetters[0].Reason, v.DeadLetters[0].Attempts, v.DeadLetters[0].FailedAt = j.Reason, 0, time.Time{}
	*v.Origin = legacy()
	v.Origin.Problem = ""
}

// guarded is a source that can wait, change a payload, and make a message a new one.
func guarded() source.Health {
	p := presets.All()["initphp-redis"]
	h := shop()
	h.Name, h.Preset, h.Profile, h.Report = "queue", p.Name, p.Profile, source.Report{}
	return h
}

// sourceJobs are jobs that were mirrored.
func sourceJobs() map[string]jobpage.View {
	died := func(change func(*jobpage.View)) jobpage.View {
		l := newLife(now.Add(-2 * time.Hour))
		j := &l.Job
		j.Queue, j.Source = "orders@shop", "shop"
		j.Type, j.State, j.DeadLetter, j.Reason = "charge", job.Discarded, job.DeadLetterStored, retry.AttemptsExhausted
		j.Error, j.Attempts, j.Execution = job.ErrorInfo{Type: "Declined", Message: "card declined: 51"}, 3, 1
		j.Policy.MaxAttempts, j.Key, j.Priority = 3, "", 0
		j.ChangedAt, j.FinishedAt = now.Add(-time.Hour), now.Add(-time.Hour)
		l.Attempts = []job.Attempt{{
			Run: 1, Number: 3, Execution: 1, FinishedAt: j.ChangedAt, Outcome: job.Failed, Error: j.Error,
			Trace: "at charge()\nat main()", Action: retry.DeadLetter, DecidedBy: "source",
		}}
		l.DeadLetters = []job.DeadLetter{{Run: 1, Reason: j.Reason, Error: j.Error.Message, FailedAt: j.ChangedAt, Queue: j.Queue, Attempts: 3}}
		l.Mirrored = &source.Mirrored{
			Record: source.Record{Place: "river_job", Key: "41", Warnings: []string{"A newer job with the same key exists."}}, Present: true, SeenAt: now.Add(-50 * time.Minute),
		}
		v := l.page(func(v *jobpage.View) { v.Origin = new(source.Health); *v.Origin = shop() })
		change(&v)
		return v
	}
	replayed := func(state source.State) func(*jobpage.View) {
		return func(v *jobpage.View) {
			v.Job.Run, v.Job.State, v.Job.DeadLetter, v.Job.Reason, v.Job.Attempts = 2, job.Returned, job.NoDeadLetter, "", 0
			if state == source.Begun {
				v.Job.State = job.Returning
			}
			v.Job.Error, v.Job.ChangedAt, v.Job.FinishedAt = job.ErrorInfo{}, now.Add(-time.Minute), time.Time{}
			v.Mirrored.Present = state == source.Begun || state == source.Changed
			if state == source.Done || state == source.Changed {
				v.Job.Worker = "shop"
			}
			v.Job.Unbegun = state == source.Unknown
			v.Mirrored.Acts = []source.Act{{Kind: source.Replay, State: state, Run: 2, AskedAt: now.Add(-time.Minute), Why: "the process ended"}}
		}
	}
	return map[string]jobpage.View{
		"job-source":        died(func(*jobpage.View) {}),
		"job-source-asked":  died(replayed(source.Begun)),
		"job-source-handed": died(replayed(source.Done)),
		"job-source-away": died(func(v *jobpage.View) {
			replayed(source.Done)(v)
			v.Job.ChangedAt = now.Add(-25 * time.Minute)
		}),
		"job-source-later": died(func(v *jobpage.View) {
			replayed(source.Done)(v)
			v.Job.RunAt = now.Add(3 * time.Hour)
		}),
		"job-source-guarded": died(func(v *jobpage.View) {
			v.Job.Queue, v.Job.Source, *v.Origin = "orders@queue", "queue", guarded()
		}),
		"job-source-succeeded": died(func(v *jobpage.View) {
			replayed(source.Done)(v)
			at := now.Add(-30 * time.Second)
			v.Job.State, v.Job.Worker, v.Job.Attempts, v.Job.Execution, v.Job.ChangedAt, v.Job.FinishedAt = job.Completed, "", 4, 2, at, at
			v.Replays = []history.Replay{{Run: 1, State: job.Discarded, Reason: retry.AttemptsExhausted, Attempts: 3, At: now.Add(-time.Minute), By: "ana"}}
			v.Attempts = append(v.Attempts, job.Attempt{
				Run: 2, Number: 4, Execution: 2, FinishedAt: at, Outcome: job.Succeeded, Action: retry.Complete, DecidedBy: "source",
			})
		}),
		"job-source-unknown":   died(replayed(source.Unknown)),
		"job-source-changed":   died(replayed(source.Changed)),
		"job-source-detached":  died(func(v *jobpage.View) { v.Origin = nil }),
		"job-source-read-only": died(func(v *jobpage.View) { *v.Origin = legacy() }),
		"job-source-gone": died(func(v *jobpage.View) {
			v.Job.DeadLetter, v.Job.Reason, v.Mirrored.Present = job.NoDeadLetter, retry.GoneAtSource, false
		}),
		"job-source-refused": died(func(v *jobpage.View) {
			v.Job.Run = 2
			v.DeadLetters = append(v.DeadLetters, job.DeadLetter{Run: 2, Problem: "permission denied for table river_job", FailedAt: v.Job.ChangedAt})
			v.Mirrored.Acts = []source.Act{{
				Kind: source.Replay, State: source.Refused, Run: 2, AskedAt: now.Add(-time.Minute), EndedAt: now.Add(-59 * time.Second),
				Why: "permission denied for table river_job",
			}}
		}),
		"job-source-doubted": died(func(v *jobpage.View) {
			why := "the process or the connection ended while the message was copied"
			v.Job.Run, v.Job.ChangedAt = 2, now.Add(-50*time.Second)
			v.Replays = []history.Replay{{Run: 1, State: job.Discarded, Reason: retry.AttemptsExhausted, Attempts: 3, At: now.Add(-time.Minute), By: "ana"}}
			v.DeadLetters = append(v.DeadLetters, job.DeadLetter{Run: 2, Reason: v.Job.Reason, Problem: why, FailedAt: v.Job.FinishedAt, Attempts: 3})
			v.Mirrored.Acts = []source.Act{{
				Kind: source.Replay, State: source.Unknown, Run: 2, AskedAt: now.Add(-time.Minute), EndedAt: now.Add(-55 * time.Second), Why: why,
			}}
		}),
		"job-source-silent":  died(silent),
		"job-source-at-work": died(func(v *jobpage.View) { silent(v); replayed(source.Done)(v); v.Job.Worker = "legacy" }),
	}
}
