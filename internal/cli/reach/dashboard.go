// Package reach finds what a command works on. Two sets of flags say where that is: [Dashboard]
// leads to a running dashboard, by its address or by the database that it has open, and
// [Accounts] to users and tokens, which are in a database while no dashboard has it open. The
// lock file beside a database has the address of the dashboard and a key, so that a command
// needs no token there (client.go).
package reach

import (
	"net"
	"net/netip"
	"os"
	"syscall"

	"redrive/internal/client"
	"redrive/internal/store/location"
	"redrive/internal/store/sqlite"
	"redrive/internal/usage"
)

// Dashboard is the flags that say which dashboard a command asks: the one at an address, or the
// one that has a database open, which the lock file beside the database leads to.
// What a flag says goes before what the environment says. With neither it is the
// dashboard of the database in this directory, or of the usual address.
type Dashboard struct {
	DB     string `name:"db" help:"Ask the dashboard that has this database open (redrive.db if open; REDRIVE_DB)." placeholder:"DATABASE"`
	Server string `help:"Ask the dashboard at this address (${server}; REDRIVE_SERVER). ${token}" placeholder:"URL"`
}

// UsualServer is the address of a dashboard that no flag has set.
const UsualServer = "http://127.0.0.1:8080"

// usualDB is the database of a dashboard that no flag has set.
const usualDB = "redrive.db"

// Connect returns a client of the dashboard.
func (f Dashboard) Connect() (*client.Client, error) {
	server := os.Getenv("REDRIVE_SERVER")
	switch {
	case f.Server != "" && f.DB != "":
		return nil, usage.Errorf("--server and --db name two dashboards; write one of them")
	case f.Server != "":
		return clientOf(f.Server, "")
	case f.DB != "":
		return clientByDB(f.DB)
	case server != "":
		return clientOf(server, "")
	}

	if db := os.Getenv("REDRIVE_DB"); db != "" {
		return clientByDB(db)
	}

	// Another user could have put a database into this directory, whose lock file would lead the
	// token to that user's server. In any doubt it is the usual address.
	holder, err := (sqlite.File{Path: usualDB}).Holder()
	if err == nil && holder != nil && belongToUser(usualDB, usualDB+".lock") {
		return clientByDB(usualDB)
	}

	return clientOf(UsualServer, "")
}

// IsHere reports whether the environment is that of a process of this machine, such as a container has it,
// whose database is on a server: another process, on another machine, can work on that.
func (f Dashboard) IsHere() bool {
	return f.Server == "" && f.DB == "" && os.Getenv("REDRIVE_SERVER") == "" &&
		os.Getenv("REDRIVE_LISTEN") != "" && location.Of(os.Getenv("REDRIVE_DB")).IsServer()
}

// Here returns a client of the process of this machine, which is below a path.
func Here(path string) (*client.Client, error) {
	listen := os.Getenv("REDRIVE_LISTEN")

	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, usage.Errorf("REDRIVE_LISTEN %q is not an address, for example 127.0.0.1:8080", listen)
	}

	ip, err := netip.ParseAddr(host)
	if host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}

	return clientOf("http://"+net.JoinHostPort(host, port)+path, "")
}

// belongToUser reports whether files belong to the user of this process.
func belongToUser(names ...string) bool {
	for _, name := range names {
		info, err := os.Lstat(name)
		if err != nil {
			return false
		}

		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
			return false
		}
	}

	return true
}
