package web

import (
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/server/limit"
	"redrive/internal/server/problem"
)

// patience is how long whatever is bounded waits for its turn.
const patience = 2 * time.Second

// The names of the limits that handlers ask.
const (
	LimitBatches = "batches"
	LimitExports = "exports"
)

// Limits are what handlers share out among addresses.
type Limits struct {
	Exports *limit.Share // files that are written
	Large   *limit.Share // large bodies that are held

	// Refused counts what was refused, by the name of the limit.
	Refused func(name string, why limit.Refusal)
}

// Turn waits a short time for a place in a share, and fails with the text when
// there is none. The place is free again after release.
func (l Limits) Turn(c echo.Context, name string, s *limit.Share, full string) (release func(), err error) {
	from := limit.AddressOf(c.RealIP())

	why, err := s.Wait(c.Request().Context(), from, patience)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, l.Refuse(name, why, full)
	}

	return func() { s.Give(from, 1) }, nil
}

// Refuse counts what is beyond a limit, and is its answer.
func (l Limits) Refuse(name string, why limit.Refusal, text string) error {
	l.Refused(name, why)

	if why == limit.ByAddress {
		return problem.New(problem.TooMany, text+"; your address has used its share")
	}

	return problem.New(problem.Overloaded, text)
}
