package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/config"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

const (
	maxProxyName = 128         // bytes of the name that a proxy gives
	maxProxied   = 10_000      // people whose roles are remembered
	warnEvery    = time.Minute // for headers that come twice, which may be those of each request
	proxiedFor   = time.Hour   // that a websocket stays open before the proxy is asked again
)

// proxied remembers which role the proxy last gave to each user. The proxy does
// not report that a role was taken away, but the next request of the same user
// shows it, and then connections that stay open are checked again.
type proxied struct {
	mu     sync.Mutex
	roles  map[string]access.Role
	warned time.Time // when the log last said that a header of the proxy came twice
}

// note remembers a role, "" when the proxy gives none, and reports whether it
// has changed.
func (p *proxied) note(name string, role access.Role) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	was, known := p.roles[name]
	if p.roles == nil || !known && len(p.roles) >= maxProxied { // a forgotten user is known again with the next request
		p.roles = map[string]access.Role{}
	}

	p.roles[name] = role

	return known && was != role
}

// may reports whether a user whom the proxy let in some time ago may go on.
func (p *proxied) may(who web.Caller, need access.Permission, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	role, known := p.roles[who.Name]

	return (!known || role.May(need)) && now.Sub(who.Seen) < proxiedFor
}

// byProxy is the caller that a trusted proxy names. The header counts only on
// connections from the proxy itself: any other client could write it. When the
// proxy names no user, the session decides.
func (s *Server) byProxy(r *http.Request) (web.Caller, error) {
	if !s.proxy.LogsIn() || !trusts(s.proxy.Networks, r) {
		return web.Caller{}, nil
	}

	names := r.Header.Values(s.proxy.UserHeader)
	if len(names) == 0 {
		return web.Caller{}, nil
	}

	if len(names) > 1 {
		return web.Caller{}, s.twice(s.proxy.UserHeader, "it must send one name")
	}

	if !isName(names[0]) {
		return web.Caller{}, problem.New(problem.UnknownCaller, fmt.Sprintf(
			"the proxy sent no usable name in %s: it must be one name without spaces, at most %d bytes", s.proxy.UserHeader, maxProxyName))
	}

	// A proxy that adds its header to one that a visitor has sent must not be believed.
	if groups := s.proxy.RoleHeader; groups != "" && len(r.Header.Values(groups)) > 1 {
		return web.Caller{}, s.twice(groups, "it must send all groups in one header, separated by commas")
	}

	role := proxyRole(*s.proxy, r.Header)
	if s.proxied.note(names[0], role) { // what is open may be so no longer
		s.Hub.Recheck()
	}

	if role == "" {
		return web.Caller{}, problem.New(problem.Forbidden, "the proxy gives you no role here; an admin can add one under access.proxy.roles")
	}

	return web.Caller{Means: web.ByProxy, Name: names[0], Role: role, Seen: time.Now()}, nil
}

// twice refuses a request in which a header of the proxy comes more than once. A login would
// not help, and all requests can be like it: the log says so now and then.
func (s *Server) twice(header, must string) error {
	if s.proxied.warns(time.Now()) {
		s.Log.Warn("The proxy sent a header more than once, so requests are refused. It must remove what a visitor has sent.",
			"header", header)
	}

	return problem.New(problem.Forbidden, fmt.Sprintf(
		"the proxy sent %s more than once: %s, and remove what a visitor has sent", header, must))
}

// warns reports whether it is time for a warning.
func (p *proxied) warns(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if now.Sub(p.warned) < warnEvery {
		return false
	}

	p.warned = now

	return true
}

// proxyRole is the strongest role that the header gives, or the role of
// everyone whom the proxy lets through.
func proxyRole(p config.Proxy, h http.Header) access.Role {
	role := p.Role
	if p.RoleHeader == "" {
		return role
	}

	for group := range strings.SplitSeq(h.Get(p.RoleHeader), ",") {
		group = strings.TrimSpace(group)
		if group != "" {
			role = role.Stronger(p.Roles[group])
		}
	}

	return role
}

// isName refuses names that could pass for something else in an audit log.
func isName(s string) bool {
	return s != "" && len(s) <= maxProxyName && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// trusts reports whether a request comes straight from one of the networks.
func trusts(networks []netip.Prefix, r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}

	ip := peer.Addr().Unmap().WithZone("")
	for _, n := range networks {
		if n.Contains(ip) {
			return true
		}
	}

	return false
}

// overHTTPS reports whether the browser speaks https: with this server, or with
// the trusted proxy in front of it.
func overHTTPS(p *config.Proxy, r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return p != nil && trusts(p.Networks, r) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// forwardedHost is the host that the browser asked for, as the trusted proxy in
// front tells it, or nothing. Behind several proxies, the first one saw the browser.
func forwardedHost(p *config.Proxy, r *http.Request) string {
	hosts := r.Header.Values("X-Forwarded-Host")
	if p == nil || len(hosts) != 1 || !trusts(p.Networks, r) {
		return ""
	}

	first, _, _ := strings.Cut(hosts[0], ",")

	return strings.TrimSpace(first)
}

// realIP finds the address of a request: its peer's, or the one that trusted
// proxies report.
func realIP(p *config.Proxy) echo.IPExtractor {
	if p == nil {
		return echo.ExtractIPDirect()
	}

	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, n := range p.Networks {
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP: n.Addr().AsSlice(), Mask: net.CIDRMask(n.Bits(), n.Addr().BitLen()),
		}))
	}

	return echo.ExtractIPFromXFFHeader(options...)
}
