package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"redrive/internal/client"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/store/postgres"
	"redrive/internal/store/sqlite"
	"redrive/internal/usage"
)

// clientByDB returns a client of the dashboard that has a database open. That needs
// no token: the lock file has a key that only the user who runs the dashboard reads.
func clientByDB(path string) (*client.Client, error) {
	if err := CheckDatabase("db", path); err != nil {
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

	err = mayAsk(holder)
	if err != nil {
		return nil, err
	}

	return clientOf(holder.URL, "")
}

// mayAsk refuses the address that a dashboard has left in its database where it would lead to
// another program, or a token over the network for all to read. A person can name any address.
func mayAsk(holder *health.LockedError) error {
	at, err := url.Parse(holder.URL)
	if err != nil {
		return fmt.Errorf("the address of the process %s cannot be read: %w", holder.Holder, err)
	}

	here, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of this machine: %w", err)
	}

	switch {
	case !holder.AnswersOn(here):
		return usage.Errorf("the process %s works on the database %s, and its address %s answers on that machine only; "+
			"run this there, or name its address with --server", holder.Holder, holder.Path, holder.URL)
	case !holder.IsLoopback() && at.Scheme != "https" && os.Getenv("REDRIVE_TOKEN") != "":
		return usage.Errorf("the process %s answers at %s, where the token would not be encrypted; name an address with --server",
			holder.Holder, holder.URL)
	}

	return nil
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
