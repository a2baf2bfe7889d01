package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/config"
)

// What a browser sends is believed about one thing only: which page made it send
// the request. The page must be of the dashboard itself. Its origin is scheme,
// host and port, because another port of the same host is another service, and so
// may be another name of the same site.

// origin is where a page comes from.
type origin struct{ scheme, name, port string }

// parseOrigin reads an origin as browsers send it. "null" is none.
func parseOrigin(text string) (origin, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return origin{}, false
	}

	return originOf(u.Scheme, u.Host), true
}

// originOf is the origin of what is reached at a host, with its port or without.
func originOf(scheme, host string) origin {
	_, port, err := net.SplitHostPort(host)
	if err != nil || port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}

	return origin{scheme, hostname(host), port}
}

// hosts are the names under which the server may be addressed, beside the address that it is
// reached at, localhost, 127.0.0.1 and ::1.
type hosts struct {
	names   map[string]bool // as a request names its host, with its port or without
	origins map[origin]bool // of pages that are the dashboard's own

	proxy *config.Proxy // whose word on scheme and host counts; nil: none is trusted
}

// newHosts reads what is configured. A request may be addressed to a name with any port, or
// to name:port alone. Pages are the dashboard's own on ports 80 and 443 of a name, and on the
// port of name:port, by http and https; or at the one origin that an entry with a scheme names.
func newHosts(configured []string, proxy *config.Proxy) hosts {
	h := hosts{map[string]bool{}, map[origin]bool{}, proxy}
	for _, text := range configured {
		if scheme, host, ok := strings.Cut(text, "://"); ok {
			o := originOf(strings.ToLower(scheme), host)
			h.names[o.name] = true // a proxy may pass the host on without its port
			h.origins[o] = true
			continue
		}

		h.names[canonical(text)] = true
		h.origins[originOf("http", text)] = true
		h.origins[originOf("https", text)] = true
	}

	return h
}

// allow reports whether a request is addressed to this server.
func (h hosts) allow(r *http.Request) bool {
	name := hostname(r.Host)
	switch name {
	case "localhost", "127.0.0.1", "::1":
		return true
	}

	return h.configured(r.Host) || isLocalAddress(r, name)
}

// configured reports whether a host, with its port or without, is one of the
// configured names.
func (h hosts) configured(host string) bool {
	return h.names[canonical(host)] || h.names[hostname(host)]
}

// ownPage reports whether no page of another origin made a browser send a
// request. What Sec-Fetch-Site says was found out by the browser and is final.
// Browsers send it to https and to this machine only; to all other addresses they
// send the origin, which is "null" for a page that may not say where it is from.
// What sends neither is no browser, and cannot be tricked by a page.
func (h hosts) ownPage(r *http.Request) bool {
	sites, origins := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	if len(sites) > 1 || len(origins) > 1 {
		return false
	}

	if len(sites) == 1 {
		return sites[0] == "same-origin" || sites[0] == "none"
	}

	return len(origins) == 0 || h.own(r, origins[0])
}

// own reports whether an origin is the server's: the one that the request itself is
// addressed to, a configured one, or the one that a trusted proxy forwards, if its host is
// configured. A page over http is not the server's own if the browser speaks https: anyone on
// the way could have written it.
func (h hosts) own(r *http.Request, text string) bool {
	o, ok := parseOrigin(text)
	if !ok || o.scheme == "http" && overHTTPS(h.proxy, r) {
		return false
	}

	if o == originOf(o.scheme, r.Host) || h.origins[o] {
		return true
	}

	// A proxy that changes the host tells in a header which one the browser asked for.
	asked := forwardedHost(h.proxy, r)

	return h.configured(asked) && o == originOf(o.scheme, asked)
}

// linked reports whether a link to a file was followed from the dashboard, and not from a
// page of another origin. It goes by Sec-Fetch-Site, or else by the Referer, for which the
// links to files ask. A request with neither passes only if its credentials are not ambient,
// that is, if the browser does not send them automatically.
func (h hosts) linked(r *http.Request, ambient bool) bool {
	if !h.ownPage(r) {
		return false
	}

	switch page := r.Referer(); {
	case r.Header.Get("Sec-Fetch-Site") != "":
		return true
	case page != "":
		return h.own(r, page)
	}

	return !ambient
}

// stranger explains why [hosts.ownPage] refused a request, and what to do about it.
func (h hosts) stranger(r *http.Request) string {
	const again = "open the dashboard itself and try again"
	from := r.Header.Get("Origin")
	if r.Header.Get("Sec-Fetch-Site") != "" {
		return "a page of another site sent this request; " + again
	}

	if from == "null" {
		return "the browser does not say which page sent this request (Origin: null); " + again +
			", and if it happens there too, let no proxy or extension set Referrer-Policy: no-referrer"
	}

	// Only a known name is worth adding: the rest may be a trap.
	if o, ok := parseOrigin(from); ok && h.configured(net.JoinHostPort(o.name, o.port)) {
		return "a page at " + clip.Text(from, 128) + " sent this request, and the dashboard is not known to be there; " +
			"if that is its address, add " + clip.Text(from, 128) + " to hosts in the configuration"
	}

	return "a page of another site sent this request; " + again
}

// CheckOrigin returns a function that reports whether the page that sent a request may open
// a websocket.
func CheckOrigin(c *config.Config) func(*http.Request) bool {
	return newHosts(c.Hosts, c.Proxy()).ownPage
}

// isLocalAddress reports whether the name is the address at which this very
// connection arrived. An address, unlike a name, cannot be pointed at another
// machine.
func isLocalAddress(r *http.Request, name string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}

	asked, err := netip.ParseAddr(name)

	return err == nil && asked.Unmap() == local.AddrPort().Addr().Unmap().WithZone("")
}

// hostname is a host without its port, as it is compared: in lower case, and an
// IPv6 address in its shortest form.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	host = strings.ToLower(strings.Trim(host, "[]"))
	if address, err := netip.ParseAddr(host); err == nil {
		return address.String()
	}

	return host
}

// canonical is a host as it is compared, with its port if it has one.
func canonical(host string) string {
	if _, port, err := net.SplitHostPort(host); err == nil && port != "" {
		return net.JoinHostPort(hostname(host), port)
	}
	return hostname(host)
}
