package config

import (
	"net/netip"
	"net/textproto"
	"strings"

	"redrive/internal/access"
	"redrive/internal/clip"
)

// Proxy is a proxy in front, which says from where a request comes, and may have found out who sends it.
type Proxy struct {
	Networks   []netip.Prefix         // from which it speaks; no other sender is believed
	UserHeader string                 // with the name; empty when it does not know who sends a request
	RoleHeader string                 // with groups, by which roles are given; may be empty
	Roles      map[string]access.Role // by group
	Role       access.Role            // of every user that it lets through; may be empty when there are groups
}

// LogsIn reports whether there is a proxy that says who sends a request.
func (p *Proxy) LogsIn() bool { return p != nil && p.UserHeader != "" }

// Proxy is the proxy that is trusted; nil when there is none.
func (c *Config) Proxy() *Proxy { return c.proxy }

// BasePath is the path below which everything is, as "/redrive"; empty for the
// root.
func (c *Config) BasePath() string { return c.basePath }

// readAccess reads the section access, which says who is believed beside the
// users of the store: so far, a proxy.
func (c *Config) readAccess(v value) error {
	return v.fields(map[string]func(value) error{"proxy": optional(&c.proxy, readProxy)})
}

// readProxy reads a trusted proxy. Every half of a setting is an error: a proxy
// that is half configured would let in too many people, or none.
func readProxy(v value) (p Proxy, err error) {
	if err := v.mapping(); err != nil {
		return p, err
	}

	p.Roles = map[string]access.Role{}
	err = v.fields(map[string]func(value) error{
		"networks":    into(&p.Networks, listOf(network)),
		"user_header": into(&p.UserHeader, headerName),
		"role_header": into(&p.RoleHeader, headerName),
		"role":        into(&p.Role, role),
		"roles": func(v value) error {
			return v.entries(func(group string, v value) (err error) {
				if strings.TrimSpace(group) != group || group == "" || strings.Contains(group, ",") {
					return v.wrong("is not the name of a group: it is empty, or has a comma or spaces around it")
				}

				p.Roles[group], err = role(v)

				return err
			})
		},
	})
	switch {
	case err != nil:
		return p, err
	case len(p.Networks) == 0:
		return p, v.wrong("needs networks, for example [10.0.0.0/8]: headers are trusted only from there")
	case p.UserHeader == "" && p.RoleHeader == "" && p.Role == "" && len(p.Roles) == 0:
		return p, nil // it logs no one in
	case p.UserHeader == "":
		return p, v.wrong("needs a user_header, for example X-Forwarded-User, to give its users a role; " +
			"leave role, role_header and roles out when it logs no one in")
	// Either without the other gives no user a role.
	case (p.RoleHeader == "") != (len(p.Roles) == 0):
		return p, v.wrong("needs role_header and roles together: the header names groups, and roles says what each may do")
	case p.Role == "" && len(p.Roles) == 0:
		return p, v.wrong("needs a role for everyone, for example role: viewer, or role_header and roles")
	case p.UserHeader == p.RoleHeader:
		return p, v.wrong("needs two different headers for user_header and role_header")
	}

	return p, nil
}

// network reads a network, or an address. It refuses a network that matches every address.
func network(v value) (n netip.Prefix, err error) {
	text, err := v.text()
	if err != nil {
		return n, err
	}

	n, err = netip.ParsePrefix(text)

	// An address such as 10.0.0.7 is the network of this address alone.
	if ip, single := netip.ParseAddr(text); single == nil {
		n, err = netip.PrefixFrom(ip, ip.BitLen()), nil
	}

	switch {
	case err != nil || n.Addr().Zone() != "" || n.Addr().Is4In6():
		return n, v.wrong("%q is not a network such as 10.0.0.0/8, or an address", clip.Text(text, 64))
	case n.Bits() == 0:
		return n, v.wrong("%q matches every address; name the proxy's own network", text)
	}

	return n.Masked(), nil
}

// headerName reads a header in its canonical form.
func headerName(v value) (string, error) {
	s, err := v.text()
	if err != nil {
		return "", err
	}

	if s == "" || strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", v.wrong("%q is not the name of a header such as X-Forwarded-User", clip.Text(s, 64))
	}

	switch name := textproto.CanonicalMIMEHeaderKey(s); name {
	case "Authorization", "Cookie", "Host", "Origin", "X-Forwarded-For", "X-Forwarded-Proto":
		return "", v.wrong("%s has another meaning; use another header", name)
	default:
		return name, nil
	}
}

// role reads a role that a user can have.
func role(v value) (access.Role, error) {
	known := func(r access.Role) bool { return access.CheckUserRole(r) == nil }
	return word(known, "not a role; use viewer, operator or admin")(v)
}

// IsBasePath reports whether s can be a base path; the empty one can.
func IsBasePath(s string) bool {
	if s == "" {
		return true
	}

	if s[0] != '/' || len(s) > 200 {
		return false
	}

	for part := range strings.SplitSeq(s[1:], "/") {
		if part == "" || part == "." || part == ".." ||
			strings.Trim(strings.ToLower(part), "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			return false
		}
	}

	return true
}
