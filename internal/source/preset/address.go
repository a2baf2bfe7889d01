package preset

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// server is a kind of server, and the URLs that name one.
type server struct {
	titles  []string
	schemes []string // the usual one first
	ports   []string // without and with encryption, unless the URL has another one
}

// servers are those that a preset can read, by their family or their engine.
var servers = map[string]server{
	"amqp":     {[]string{"RabbitMQ"}, []string{"amqp", "amqps"}, []string{"5672", "5671"}},
	"redis":    {[]string{"Redis"}, []string{"redis", "rediss", "unix"}, []string{"6379"}},
	"sqlite":   {[]string{"SQLite"}, []string{"sqlite"}, nil},
	"postgres": {[]string{"PostgreSQL"}, []string{"postgres", "postgresql"}, []string{"5432"}},
	"mysql":    {[]string{"MySQL", "MariaDB"}, []string{"mysql", "mariadb"}, []string{"3306"}},
}

// reads are the servers in which dead letters of the preset can be.
func (p *Preset) reads() (all []server) {
	if p.Family != "sql" {
		return []server{servers[p.Family]}
	}

	for _, engine := range p.Engines {
		all = append(all, servers[engine])
	}

	return all
}

// CheckURL returns an error unless a URL names a server that the preset reads. The error has
// nothing of the URL, which could be a password by mistake.
func (p *Preset) CheckURL(address string) error {
	return checkURL(address, "url", fmt.Sprintf("the preset %s reads", p.Name), p.reads())
}

// CheckWorkURL does the same for the queue that replays go to.
func (p *Preset) CheckWorkURL(address string) error {
	return checkURL(address, "work_url", fmt.Sprintf("the queue of the preset %s is in", p.Name), []server{servers["redis"]})
}

func checkURL(address, field, of string, allowed []server) error {
	var titles, beginnings, known []string
	for _, s := range allowed {
		titles = append(titles, s.titles...)
		for _, scheme := range s.schemes {
			known = append(known, scheme)
			beginnings = append(beginnings, beginning(scheme))
		}
	}

	must := fmt.Sprintf("%s %s: %s must begin with %s", of, either(titles), field, either(beginnings))

	scheme, rest, ok := strings.Cut(address, "://")
	scheme = strings.ToLower(scheme)
	switch {
	case !ok || !slices.Contains(known, scheme):
		return errors.New(must)
	case scheme == "sqlite" && !strings.HasPrefix(rest, "/"):
		return fmt.Errorf("%s; a file needs three slashes, because its path begins at the root, as in sqlite:///srv/app.db", must)
	}

	return nil
}

// beginning is how a URL of a scheme begins. The path of a file begins at the root.
func beginning(scheme string) string {
	if scheme == "sqlite" {
		return "sqlite:///"
	}
	return scheme + "://"
}

// Address is where the dead letters of a source are, as in "db.internal/shop, table
// failed_jobs": what tells the places apart in which the same key can name different records.
// It has no login and no password, and is the same with and without encryption. It is empty
// if the URL cannot be read.
func (p *Preset) Address(address string, s Settings) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}

	p, s, err = p.Complete(s)
	if err != nil { // unreachable: the configuration was read with these settings
		return ""
	}

	switch {
	case p.Family == "amqp":
		return hosts(u.Host, "amqp") + ", virtual host " + cmp.Or(strings.TrimPrefix(u.Path, "/"), "/")
	case p.Family == "redis":
		return inRedis(u) + ", key " + p.dead(s.Names)
	}

	return inSQL(u) + ", table " + p.table(s.Names)
}

// inRedis is the server of a URL with the number of its database.
func inRedis(u *url.URL) string {
	number := u.Query().Get("db")
	if u.Scheme == "unix" {
		return u.Path + "/" + cmp.Or(number, "0")
	}

	return hosts(u.Host, "redis") + "/" + cmp.Or(strings.Trim(u.Path, "/"), number, "0")
}

// inSQL is the database of a URL: a file, or a server with the name of the database.
func inSQL(u *url.URL) string {
	name, query := strings.TrimPrefix(u.Path, "/"), u.Query()
	switch u.Scheme {
	case "sqlite":
		return u.Path
	case "mysql", "mariadb":
		return cmp.Or(query.Get("socket"), hosts(u.Host, "mysql")) + "/" + name
	}

	host := u.Host // of several, each with a port of its own
	if query.Has("host") || query.Has("port") {
		host = net.JoinHostPort(cmp.Or(query.Get("host"), u.Hostname()), cmp.Or(query.Get("port"), u.Port(), servers["postgres"].ports[0]))
	}

	return hosts(host, "postgres") + "/" + cmp.Or(query.Get("dbname"), name)
}

// hosts are the hosts of a URL in one order, each without a port that it has anyway.
func hosts(text, of string) string {
	all := strings.Split(strings.ToLower(text), ",")
	for i := range all {
		for _, port := range servers[of].ports {
			all[i] = strings.TrimSuffix(all[i], ":"+port)
		}

		all[i] = cmp.Or(all[i], "localhost")
	}

	slices.Sort(all)

	return strings.Join(all, ",")
}

// dead is the key in which the dead letters are. That of an own system has its names already.
func (p *Preset) dead(names map[string]string) string {
	key := p.Redis.Dead
	if p.Own {
		return key
	}

	for name, value := range names {
		key = strings.ReplaceAll(key, "{"+name+"}", value)
	}

	return key
}

// table is the table in which the dead letters are.
func (p *Preset) table(names map[string]string) string {
	all, _ := placeholders(p.From)
	for _, name := range all {
		if table, ok := names[name]; ok {
			return table
		}
	}

	return "" // unreachable: a test reads all presets
}

// either is a list of alternatives, as in "a, b or c".
func either(all []string) string {
	if len(all) == 1 {
		return all[0]
	}

	last := len(all) - 1

	return strings.Join(all[:last], ", ") + " or " + all[last]
}
