package server

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/server/api"
	"redrive/internal/server/limit"
	"redrive/internal/server/web"
)

// The names of the limits, as metrics count what is beyond them.
const (
	limitConnections  = "connections"
	limitRequests     = "requests"
	limitRequestBytes = "request_bytes"
	limitWebsockets   = "websockets"
	limitLogins       = "logins"
	limitQueues       = "queues"
)

var limitNames = []string{
	limitConnections, limitRequests, limitRequestBytes, limitWebsockets, limitLogins, limitQueues, web.LimitBatches, web.LimitExports,
}

// limits bound what all requests take. What single handlers take is bounded by
// [web.Limits].
type limits struct {
	connections *limit.Connections
	requests    *limit.Share
	bytes       *limit.Share // of the bodies of requests under way
}

// limits are those of the configuration.
func (o Options) limits() limits {
	l, trusted := o.Config.Limits(), []netip.Prefix(nil)
	if proxy := o.Config.Proxy(); proxy != nil {
		trusted = proxy.Networks
	}

	return limits{
		connections: limit.NewConnections(cmp.Or(o.Connections, l.Connections), l.AddressShare, trusted,
			func(why limit.Refusal) { o.Metrics.Refused(limitConnections, why) }),
		requests: limit.NewShare(l.Requests, l.AddressShare),
		bytes:    limit.NewShare(l.RequestBytes, l.AddressShare),
	}
}

// handlerLimits are those that handlers ask.
func (o Options) handlerLimits() web.Limits {
	l := o.Config.Limits()

	return web.Limits{
		Exports: limit.NewShare(l.Exports, l.AddressShare), Large: limit.NewShare(l.Batches, l.AddressShare),
		Refused: o.Metrics.Refused,
	}
}

// leastRate is how fast a large body has to arrive, in bytes a second.
const leastRate = 512 << 10

// extra is how much longer than others a request may take because of its body. Reads
// need none: announcing one must not make a slow query slower.
func extra(r *http.Request) time.Duration {
	if web.IsRead(r) {
		return 0
	}
	return time.Duration(min(max(r.ContentLength, 0), api.MaxBatch)) * time.Second / leastRate
}

// bound lets an address have only so many requests under way, and only so many
// bytes of their bodies. A body has to go on arriving.
func (s *Server) bound(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		r, from := c.Request(), limit.AddressOf(c.RealIP())
		control := http.NewResponseController(c.Response())
		answerBy := func(end time.Time) {
			err := control.SetWriteDeadline(end)
			if err != nil && !errors.Is(err, http.ErrNotSupported) { // then the connection is gone
				s.Log.Debug("the time for an answer could not be set", "request", web.RequestID(c), "error", err)
			}
		}

		// What was done is told in full, however long it took on a busy machine.
		c.Response().Before(func() { answerBy(time.Now().Add(writeTimeout)) })

		if r.Body != nil && r.Body != http.NoBody {
			now := time.Now()
			answerBy(now.Add(writeTimeout + extra(r)))

			body := limit.NewBody(c.Response(), r, now.Add(readTimeout+extra(r)), s.limits.bytes, from, func(why limit.Refusal) error {
				return s.Limits.Refuse(limitRequestBytes, why, "the bodies of other requests use all the memory reserved for bodies; "+
					"nothing was changed, try again")
			})
			r.Body = body
			defer func() {
				if late := body.Done(); late != nil {
					s.Log.Debug("the rest of a body could not be bounded", "request", web.RequestID(c), "error", late)
				}
			}()
		}

		if r.URL.Path == s.basePath+"/healthz" { // a probe that is refused in a crowd would report the process as dead
			return next(c)
		}

		if why := s.limits.requests.Take(from, 1); why != "" {
			return s.Limits.Refuse(limitRequests, why, "too many requests are under way; nothing was changed, try again")
		}
		defer s.limits.requests.Give(from, 1)

		return next(c)
	}
}

// Listen returns a listener for the server of [Server.HTTP], which bounds the
// connections.
func (s *Server) Listen(l net.Listener) net.Listener { return s.limits.connections.Listen(l) }
