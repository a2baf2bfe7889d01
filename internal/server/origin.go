package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

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

// hosts are the names under which the server may be addressed, beside the
// address that it is reached at and the names of this machine.
type hosts struct {
	names   map[string]bool // as a request names its host, with its port or without
	origins map[origin]bool // of pages that are the dashboard's own
}

// newHosts reads what is configured: a name stands for the ports of http and
// https, name:port for that port alone, and https://name:port for that origin.
func newHosts(configured []string) hosts {
	h := hosts{map[string]bool{}, map[origin]bool{}}
	for _, text := range configured {
		text = strings.ToLower(text)
		if scheme, host, ok := strings.Cut(text, "://"); ok {
			o := originOf(scheme, host)
			h.names[o.name], h.origins[o] = true, true // a proxy may pass the host on without its port
			continue
		}
		h.names[text], h.origins[originOf("http", text)], h.origins[originOf("https", text)] = true, true, true
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
	return h.names[strings.ToLower(r.Host)] || h.names[name] || isLocalAddress(r, name)
}

// ownPage reports whether no page of another origin made a browser send a
// request. What Sec-Fetch-Site says was found out by the browser and is final; a
// browser that does not send it sends the origin. Whoever sends neither is no
// browser, and cannot be tricked by a page. A proxy in front changes the host that
// a request names, but not the origin, which is then a configured one.
func (h hosts) ownPage(r *http.Request, https bool) bool {
	sites, origins := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	if len(sites) > 1 || len(origins) > 1 {
		return false
	}
	if len(sites) == 1 {
		return sites[0] == "same-origin" || sites[0] == "none"
	}
	return len(origins) == 0 || h.own(r, origins[0], https)
}

// own reports whether an origin is the server's: the one that the request itself
// is addressed to, or a configured one. A page without https is not its own when
// the browser speaks https: whoever is on the way could have written it.
func (h hosts) own(r *http.Request, text string, https bool) bool {
	o, ok := parseOrigin(text)
	if !ok || https && o.scheme == "http" {
		return false
	}
	return o == originOf(o.scheme, r.Host) || h.origins[o]
}

// linked reports whether no page of another origin led to an address. A browser
// that says nothing else of a link tells the page that it is on, as the links to
// files ask for. One that sends a login along by itself has to say something.
func (h hosts) linked(r *http.Request, https, ambient bool) bool {
	if !h.ownPage(r, https) {
		return false
	}
	switch page := r.Referer(); {
	case r.Header.Get("Sec-Fetch-Site") != "":
		return true
	case page != "":
		return h.own(r, page, https)
	}
	return !ambient
}

// CheckOrigin reports whether a page may open a websocket.
func CheckOrigin(c *config.Config) func(*http.Request) bool {
	h, proxy := newHosts(c.Hosts), c.Proxy()
	return func(r *http.Request) bool { return h.ownPage(r, overHTTPS(proxy, r)) }
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

// hostname is a host without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
