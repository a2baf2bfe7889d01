package poll

import (
	"redrive/internal/clip"
	"redrive/internal/errortext"
	"redrive/internal/job"
	"redrive/internal/source"
)

// understand reads what a record says of its error, and of those before, as the output of
// a program is read: a column can hold everything that its language prints.
func understand(r *source.Record) {
	r.Error, r.Trace = understood(r.Error, r.Trace)
	for i, f := range r.History {
		r.History[i].Error, r.History[i].Trace = understood(f.Error, f.Trace)
	}
}

func understood(e job.ErrorInfo, trace string) (job.ErrorInfo, string) {
	said := errortext.Fields(e.Type, e.Message, trace)
	e.Type, e.Message = said.Class, said.Message
	return e, said.Trace
}

// hideIn takes secrets out of what a record says of its failures, as out of what a handler
// says. What an act needs is left as it is.
func (a *attached) hideIn(r *source.Record) {
	hide := func(e *job.ErrorInfo, trace *string) {
		e.Type, e.Message = a.keptText(e.Type, job.MaxType), a.keptText(e.Message, job.MaxErrorMessage)
		*trace = a.keptText(*trace, job.MaxTrace)
	}

	r.Type = clip.Text(r.Type, job.MaxType)
	hide(&r.Error, &r.Trace)

	r.History = r.History[max(0, len(r.History)-maxFailures):]
	for i := range r.History {
		hide(&r.History[i].Error, &r.History[i].Trace)
	}

	r.Warnings = r.Warnings[:min(len(r.Warnings), maxWarnings)]
	for i := range r.Warnings {
		r.Warnings[i] = a.keptText(r.Warnings[i], maxSentence)
	}
}
