package web

import (
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Means is how a caller is known.
type Means int

// The means, from none to the strongest that a browser has.
const (
	ByNothing Means = iota // a stranger
	ByOpenness
	ByToken
	ByProxy
	BySession
)

// Ambient reports whether a browser sends the proof along automatically, even when a
// page of another site makes it send the request.
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

// Scope names the caller as the owner of idempotency keys: a token by its id, a
// person by the way in and the name. All who reach an open dashboard are one.
func (who Caller) Scope() string {
	switch who.Means {
	case ByToken:
		return "token " + who.Token
	case ByProxy:
		return "proxy " + who.Name
	case BySession:
		return "user " + who.Name
	}

	return "anybody"
}

const callerKey = "redrive.caller"

// SetCaller says who sends a request.
func SetCaller(c echo.Context, who Caller) { c.Set(callerKey, who) }

// CallerOf is who sends a request, as far as it was found out.
func CallerOf(c echo.Context) Caller {
	who, _ := c.Get(callerKey).(Caller)
	return who
}

// Actor is the caller as the audit log names them.
func Actor(c echo.Context) audit.Actor {
	who := CallerOf(c)
	by := audit.Actor{Name: who.Name, Address: c.RealIP(), Open: who.Means == ByOpenness}
	if by.Name == "" {
		by.Name = unnamed(by.Address, IsForm(c))
	}

	return by
}

// unnamed is what the audit log calls a caller without a name, by the address and
// by whether a page or a program sent the request.
func unnamed(address string, page bool) string {
	kind := "unknown user"
	ip, err := netip.ParseAddr(address)
	if !page {
		kind = "API client"
	} else if err == nil && ip.Unmap().IsLoopback() {
		kind = "local user"
	}

	return kind + " (" + address + ")"
}
