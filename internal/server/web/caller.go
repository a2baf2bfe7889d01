package web

import (
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Means is how somebody is known.
type Means int

// The means, from none to the strongest that a browser has.
const (
	ByNothing Means = iota // a stranger
	ByOpenness
	ByToken
	ByProxy
	BySession
)

// Ambient reports whether a browser sends the proof along by itself, also when
// a page of somebody else makes it send a request.
func (m Means) Ambient() bool { return m == ByProxy || m == BySession }

// Caller is who sends a request. The zero Caller may do nothing.
type Caller struct {
	Means   Means
	Name    string // as histories show it
	Role    access.Role
	Session []byte    // the hash of the session's secret
	Token   string    // the id of the token
	Seen    time.Time // a session or a token: last; by the proxy: now
}

const callerKey = "redrive.caller"

// SetCaller says who sends a request.
func SetCaller(c echo.Context, who Caller) { c.Set(callerKey, who) }

// CallerOf is who sends a request, as far as it was found out.
func CallerOf(c echo.Context) Caller {
	who, _ := c.Get(callerKey).(Caller)
	return who
}

// Actor names who acts, as far as it is known: by their name, or without a login
// through what and from where.
func Actor(c echo.Context) audit.Actor {
	who := CallerOf(c)
	by := audit.Actor{Name: who.Name, Address: c.RealIP(), Open: who.Means == ByOpenness}
	if by.Name == "" {
		through := "api"
		if IsForm(c) {
			through = "dashboard"
		}
		by.Name = through + " at " + by.Address
	}
	return by
}
