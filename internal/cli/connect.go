package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"redrive/internal/client"
	"redrive/internal/store/location"
	"redrive/internal/store/postgres"
	"redrive/internal/store/sqlite"
	"redrive/internal/usage"
)

// dashboardFlags say which dashboard a command asks: the one at an address, or the
// one that has a database open, which the lock file beside the database leads to.
// What a flag says goes before what the environment says. With neither it is the
// dashboard of the database in this directory, or of the usual address.
type dashboardFlags struct {
	DB     string `name:"db" help:"Ask the dashboard that has this database open (redrive.db if open; REDRIVE_DB)." placeholder:"DATABASE"`
	Server string `help:"Ask the dashboard at this address (${server}; REDRIVE_SERVER). ${token}" placeholder:"URL"`
}

// The default database and address of a dashboard.
const (
	usualDB     = "redrive.db"
	usualServer = "http://127.0.0.1:8080"
)

// connect returns a client of the dashboard.
func (f dashboardFlags) connect() (*client.Client, error) {
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

	return clientOf(usualServer, "")
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

// clientByDB returns a client of the dashboard that has a database open. That needs
// no token: the lock file has a key that only the user who runs the dashboard reads.
func clientByDB(path string) (*client.Client, error) {
	if err := checkDatabase(path); err != nil {
		return nil, err
	}

	if server, ok := location.Of(path).Server(); ok {
		return clientOfServer(server, location.Of(path))
	}

	holder, err := sqlite.File{Path: path}.Holder()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usage.Errorf("--db %s: there is no such file; name the database", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, usage.Errorf("%s: %w; run this as the user who runs the dashboard, or name its address with --server", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case holder == nil:
		return nil, usage.Errorf("no dashboard has %s open; start one, or name its address with --server", path)
	case holder.URL == "":
		return nil, fmt.Errorf("the process with pid %d has %s open and answers no requests yet; try again in a moment", holder.PID, path)
	}

	return clientOf(holder.URL, holder.Key)
}

// clientOfServer returns a client of the dashboard that works on a database on a server, which
// knows its address. The client sends the token of the environment: the rights of a user of the
// database say nothing of the rights in the dashboard.
func clientOfServer(server postgres.Server, name location.Location) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), client.Timeout)
	defer cancel()

	holder, err := server.Holder(ctx)
	switch {
	case err != nil:
		return nil, err
	case holder == nil:
		return nil, usage.Errorf("no dashboard works on %s; start one, or name its address with --server", name)
	case holder.URL == "":
		return nil, fmt.Errorf("the process %s works on %s and answers no requests yet; try again in a moment", holder.Holder, name)
	}

	return clientOf(holder.URL, "")
}

// clientOf returns a client of the dashboard at an address. It sends the token of the
// environment, or else the key of the lock file. No flag has a token, because every user of the
// machine can see command lines.
func clientOf(server, key string) (*client.Client, error) {
	dashboard, err := client.New(server)
	if err != nil {
		return nil, usage.Errorf("--server %w", err)
	}

	token, set := os.LookupEnv("REDRIVE_TOKEN")
	dashboard.Token = strings.TrimSpace(token)
	if set && dashboard.Token == "" {
		return nil, usage.Errorf("REDRIVE_TOKEN is empty; set it to the token, or unset it")
	}

	dashboard.Token = cmp.Or(dashboard.Token, key)

	return dashboard, nil
}

// healthCommand is dashboard health: the health check of a container, or of a script
// that waits for a start.
type healthCommand struct{ dashboardFlags }

// Run fails unless the dashboard takes and runs jobs. A dashboard that is not there is
// a failure like any other, and no wrong command line: container runtimes reserve the
// status 2.
func (h *healthCommand) Run(c Console) error {
	dashboard, err := h.connect()
	if err == nil {
		err = dashboard.Ready(context.Background())
	}

	if err != nil {
		return errors.New(err.Error())
	}

	fmt.Fprintln(c.Stdout, "ready")

	return nil
}
