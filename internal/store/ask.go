package store

import (
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// What people ask of a source is written into the ledger in the transaction that moves its
// job. When the source has answered, its job moves again (package mirror).

// CheckAct says why an act on a job is not allowed at its source. It is empty if the act is
// allowed, and for jobs that have no source.
func (s *Store) CheckAct(j job.Job, kind operation.Kind) string {
	return s.checkRequest(j, source.Request{Kind: source.Kind(kind)})
}

func (s *Store) checkRequest(j job.Job, r source.Request) string {
	if j.Source == "" || s.checkSource == nil {
		return ""
	}
	return s.checkSource(j.Source, r)
}

// ask writes into the ledger what the sources of jobs are to do. The jobs are as they are
// after the act, and those without a source are left out. A source that is not attached is
// never told, so the act on its record ends at once.
func (s *Store) ask(t *db.Tx, ask projection.Ask, jobs []job.Job) error {
	var attached, unattached []job.Job
	for _, j := range jobs {
		switch name := j.Source; {
		case name == "":
		case s.attached != nil && !s.attached(name):
			unattached = append(unattached, j)
		default:
			attached = append(attached, j)
		}
	}

	aside := ask
	aside.Jobs, aside.Unattached = unattached, true
	ask.Jobs = attached

	return db.Steps(t, s.tell(ask), s.tell(aside))
}

// tell tells the projections what sources are asked to do, if it is anything.
func (s *Store) tell(ask projection.Ask) func(*db.Tx) error {
	return func(t *db.Tx) error {
		if len(ask.Jobs) == 0 {
			return nil
		}
		return s.core.Ask(t, ask)
	}
}
