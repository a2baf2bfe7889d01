package preset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// server is a kind of server, and the URLs that name one.
type server struct {
	titles  []string
	schemes []string // the usual one first
	port    string   // unless the URL has another one
}

// servers are those that a preset can read, by their family or their engine.
var servers = map[string]server{
	"amqp":     {[]string{"RabbitMQ"}, []string{"amqp", "amqps"}, "5672"},
	"redis":    {[]string{"Redis"}, []string{"redis", "rediss", "unix"}, "6379"},
	"sqlite":   {[]string{"SQLite"}, []string{"sqlite"}, ""},
	"postgres": {[]string{"PostgreSQL"}, []string{"postgres", "postgresql"}, "5432"},
	"mysql":    {[]string{"MySQL", "MariaDB"}, []string{"mysql", "mariadb"}, "3306"},
}

// reads are the servers in which dead letters of the preset can lie.
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

// either is a list of alternatives, as in "a, b or c".
func either(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}
