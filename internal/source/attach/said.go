package attach

import (
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
