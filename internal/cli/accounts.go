package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/admin"
	"redrive/internal/audit"
	"redrive/internal/client"
	"redrive/internal/store"
	"redrive/internal/store/health"
	"redrive/internal/store/location"
	"redrive/internal/usage"
)

// accountFlags say where users and tokens are kept: in the database file while no
// dashboard has it open, and otherwise behind the API of the dashboard that has. That
// dashboard leaves a key beside the database, which only its own user can read: a user who
// could open the file needs no token.
type accountFlags struct {
	DB     string `name:"db" help:"${database} (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"DATABASE"`
	Server string `help:"URL of another dashboard. ${admin_token}" placeholder:"URL"`
}

// accountRequest describes what a command about users or tokens does, once for
// each of its two ways: on the open database, and through the API.
type accountRequest struct {
	local  func(context.Context, *store.Store) error
	method string // of the request to the API
	path   string // below /api/v1
	send   any    // the document to send, or nil
	into   any    // where to put the answer, or nil
	create bool   // the database may be new; otherwise a mistyped name makes none
}

// do carries out the request in the way that fits: through the API when the
// flags name a dashboard, or when a dashboard has the database open.
func (a accountFlags) do(c Console, r accountRequest) error {
	if a.Server != "" {
		return r.ask(a.Server, "")
	}

	where := location.Of(a.DB)
	if !where.IsServer() {
		if _, err := os.Stat(a.DB); !r.create && errors.Is(err, fs.ErrNotExist) {
			return usage.Errorf("--db %s: no such file; name the database file", a.DB)
		}
	}

	// A dashboard that has the database open has left its address there.
	ctx, cancel := context.WithTimeout(context.Background(), client.Timeout)
	defer cancel()

	s, err := store.Open(ctx, store.Options{Database: where.Database(false)})
	var locked *health.LockedError
	if errors.As(err, &locked) && locked.URL != "" {
		fmt.Fprintf(c.Stderr, "%s is open in process %s; sending the command to %s.\n",
			where, cmp.Or(locked.Holder, strconv.Itoa(locked.PID)), locked.URL)
		return r.ask(locked.URL, locked.Key)
	}

	if err != nil {
		return refusalOr(err)
	}

	return refusalOr(errors.Join(r.local(ctx, s), s.Close()))
}

// connect returns a client of the dashboard that the flags name, or that has the
// database open.
func (a accountFlags) connect() (*client.Client, error) {
	if a.Server != "" {
		return clientOf(a.Server, "")
	}
	return clientByDB(a.DB)
}

// ask carries out the request through the API, with the key unless the environment
// has a token.
func (r accountRequest) ask(server, key string) error {
	dashboard, err := clientOf(server, key)
	if err != nil {
		return err
	}

	return dashboard.Call(context.Background(), r.method, r.path, r.send, r.into)
}

// refusalOr returns an error of the store; a refusal becomes a usage error.
func refusalOr(err error) error {
	if errors.As(err, new(*access.Refusal)) || errors.Is(err, access.ErrUnknown) || errors.As(err, new(*health.LockedError)) {
		return usage.Of(err)
	}
	return err
}

// change carries out a request that changes something, and prints what was done.
func (a accountFlags) change(c Console, r accountRequest, done string, args ...any) error {
	r.method = http.MethodPost

	err := a.do(c, r)
	if err == nil {
		fmt.Fprintf(c.Stdout, done+"\n", args...)
	}

	return err
}

// commandLine is who acts in the audit log when a command opens the database itself.
func commandLine() audit.Actor { return audit.Actor{Name: "command line"} }

// userCommand is the commands about users.
type userCommand struct {
	Add      userAdd      `cmd:"" help:"Add a user. The first user must be an admin; from then on, everyone has to log in."`
	List     userList     `cmd:"" help:"List the users."`
	Role     userRole     `cmd:"" help:"Change a user's role."`
	Password userPassword `cmd:"" help:"Change a user's password."`
	Remove   userRemove   `cmd:"" help:"Remove a user."`
}

// userAdd is dashboard user add.
type userAdd struct {
	Name string      `arg:"" help:"The name, for example ana."`
	Role access.Role `required:"" help:"viewer, operator or admin." placeholder:"ROLE"`
	accountFlags
}

// Run adds the user. The password is asked for once the flags are right.
func (u *userAdd) Run(c Console) error {
	if err := errors.Join(access.CheckUser(u.Name), access.CheckUserRole(u.Role)); err != nil {
		return usage.Of(err)
	}

	password, err := askPassword(c, u.Name)
	if err != nil {
		return err
	}

	return u.change(c, accountRequest{
		path: "users", send: admin.NewUser{Name: u.Name, Role: u.Role, Password: password}, create: true,
		// What is done when no dashboard has the database open.
		local: func(ctx context.Context, s *store.Store) error {
			hash, err := access.NewPasswords().Hash(ctx, password)
			if err != nil {
				return err
			}

			return s.Accounts.AddUser(ctx, time.Now(), access.User{Name: u.Name, Role: u.Role, Password: hash}, commandLine())
		},
	}, "Added %s as %s.", u.Name, u.Role)
}

// userList is dashboard user list.
type userList struct{ accountFlags }

// Run lists the users.
func (u *userList) Run(c Console) error {
	var found admin.UserList

	err := u.do(c, accountRequest{
		method: http.MethodGet, path: "users", into: &found,
		local: func(ctx context.Context, s *store.Store) error {
			users, err := s.Accounts.Users(ctx)
			for _, u := range users {
				found.Users = append(found.Users, admin.User{Name: u.Name, Role: u.Role, CreatedAt: apitype.At(u.Created)})
			}

			return err
		},
	})
	if err != nil {
		return err
	}

	if len(found.Users) == 0 {
		fmt.Fprintln(c.Stdout, "There are no users, so no login is required on this machine.")
		return nil
	}

	rows := "NAME\tROLE\tSINCE\n"
	for _, u := range found.Users {
		rows += fmt.Sprintf("%s\t%s\t%s\n", u.Name, u.Role, toTheDay(u.CreatedAt.Time))
	}

	return printTable(c, rows)
}

// printTable prints lines whose cells are separated by tabs, in aligned columns.
func printTable(c Console, rows string) error {
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, rows)
	return w.Flush()
}

// toTheDay is a date in UTC, or a dash for the zero time.
func toTheDay(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02")
}

// userRole is dashboard user role. The store refuses to take the role from the only
// admin.
type userRole struct {
	Name string      `arg:"" help:"The user."`
	Role access.Role `required:"" help:"viewer, operator or admin." placeholder:"ROLE"`
	accountFlags
}

// Run changes the role.
func (u *userRole) Run(c Console) error {
	if err := access.CheckUserRole(u.Role); err != nil {
		return usage.Of(err)
	}

	return u.change(c, accountRequest{
		path: "users/" + url.PathEscape(u.Name) + "/role", send: map[string]any{"role": u.Role},
		local: func(ctx context.Context, s *store.Store) error {
			return s.Accounts.SetRole(ctx, time.Now(), u.Name, u.Role, commandLine())
		},
	}, "%s is now %s and has to log in again.", u.Name, u.Role)
}

// userPassword is dashboard user password. It asks for the new password as user
// add does.
type userPassword struct {
	Name string `arg:"" help:"The user."`
	accountFlags
}

// Run changes the password.
func (u *userPassword) Run(c Console) error {
	password, err := askPassword(c, u.Name)
	if err != nil {
		return err
	}

	return u.change(c, accountRequest{
		path: "users/" + url.PathEscape(u.Name) + "/password", send: map[string]any{"password": password},
		local: func(ctx context.Context, s *store.Store) error {
			hash, err := access.NewPasswords().Hash(ctx, password)
			if err != nil {
				return err
			}

			return s.Accounts.SetPassword(ctx, time.Now(), u.Name, hash, commandLine())
		},
	}, "%s has a new password and has to log in again.", u.Name)
}

// userRemove is dashboard user remove. The store refuses to remove the only admin.
type userRemove struct {
	Name string `arg:"" help:"The user."`
	accountFlags
}

// Run removes the user.
func (u *userRemove) Run(c Console) error {
	return u.change(c, accountRequest{
		path: "users/" + url.PathEscape(u.Name) + "/remove",
		local: func(ctx context.Context, s *store.Store) error {
			return s.Accounts.RemoveUser(ctx, time.Now(), u.Name, commandLine())
		},
	}, "Removed %s.", u.Name)
}
