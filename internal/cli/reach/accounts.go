package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/cli/console"
	"redrive/internal/client"
	"redrive/internal/store"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/store/moving"
	"redrive/internal/usage"
)

// Accounts is the flags that say where users and tokens are kept: in the database file while no
// dashboard has it open, and otherwise behind the API of the dashboard that has. That
// dashboard leaves a key beside the database, which only its own user can read: a user who
// could open the file needs no token.
type Accounts struct {
	DB     string `name:"db" help:"${database} (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"DATABASE"`
	Server string `help:"URL of another dashboard. ${admin_token}" placeholder:"URL"`
}

// Request describes what a command about users or tokens does, once for
// each of its two ways: on the open database, and through the API.
type Request struct {
	Local  func(context.Context, *store.Store) error
	Method string // of the request to the API
	Path   string // below /api/v1
	Send   any    // the document to send, or nil
	Into   any    // where to put the answer, or nil
	Create bool   // the database may be new; otherwise a mistyped name makes none
}

// Do carries out the request in the way that fits: through the API when the
// flags name a dashboard, or when a dashboard has the database open.
func (a Accounts) Do(c console.Console, r Request) error {
	if a.Server != "" {
		return r.ask(a.Server, "")
	}

	where := location.Of(a.DB)
	if !where.IsServer() {
		if _, err := os.Stat(a.DB); !r.Create && errors.Is(err, fs.ErrNotExist) {
			return usage.Errorf("--db %s: no such file; name the database file", a.DB)
		}
	}

	// A dashboard that has the database open has left its address there.
	ctx, cancel := context.WithTimeout(context.Background(), client.Timeout)
	defer cancel()

	purpose := moving.ToChange
	if r.Create {
		purpose = moving.ToWork
	}

	s, err := store.Open(ctx, store.Options{Database: where.For(purpose)})
	var locked *health.LockedError
	if errors.As(err, &locked) && locked.URL != "" {
		if where.IsServer() {
			if err := mayAsk(locked); err != nil {
				return err
			}
		}

		fmt.Fprintf(c.Stderr, "%s is open in process %s; sending the command to %s.\n",
			where, cmp.Or(locked.Holder, strconv.Itoa(locked.PID)), locked.URL)
		return r.ask(locked.URL, locked.Key)
	}

	switch {
	case !r.Create && errors.Is(err, fs.ErrNotExist):
		return usage.Errorf("--db %s: there is no database of Redrive; name another one, or start a dashboard with it", where)
	case err != nil:
		return refusalOr(err)
	}

	return refusalOr(errors.Join(r.Local(ctx, s), s.Close()))
}

// Connect returns a client of the dashboard that the flags name, or that has the
// database open.
func (a Accounts) Connect() (*client.Client, error) {
	if a.Server != "" {
		return clientOf(a.Server, "")
	}
	return clientByDB(a.DB)
}

// ask carries out the request through the API, with the key unless the environment
// has a token.
func (r Request) ask(server, key string) error {
	dashboard, err := clientOf(server, key)
	if err != nil {
		return err
	}

	return dashboard.Call(context.Background(), r.Method, r.Path, r.Send, r.Into)
}

// refusalOr returns an error of the store; a refusal becomes a usage error.
func refusalOr(err error) error {
	if errors.As(err, new(*access.Refusal)) || errors.Is(err, access.ErrUnknown) || errors.As(err, new(*health.LockedError)) {
		return usage.Of(err)
	}
	return err
}

// Change carries out a request that changes something, and prints what was done.
func (a Accounts) Change(c console.Console, r Request, done string, args ...any) error {
	r.Method = http.MethodPost

	err := a.Do(c, r)
	if err == nil {
		fmt.Fprintf(c.Stdout, done+"\n", args...)
	}

	return err
}

// CommandLine is who acts in the audit log when a command opens the database itself.
func CommandLine() audit.Actor { return audit.Actor{Name: "command line"} }
