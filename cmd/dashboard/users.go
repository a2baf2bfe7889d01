package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"redrive/internal/access"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/wire"
)

// userCommand is the commands about users.
type userCommand struct {
	Add      userAdd      `cmd:"" help:"Add a user. The first one is an admin; from then on everybody logs in."`
	List     userList     `cmd:"" help:"List the users."`
	Role     userRole     `cmd:"" help:"Give a user another role."`
	Password userPassword `cmd:"" help:"Give a user another password."`
	Remove   userRemove   `cmd:"" help:"Remove a user."`
}

// userAdd is dashboard user add.
type userAdd struct {
	Name string `arg:"" help:"The name, as ana."`
	Role string `required:"" help:"viewer, operator or admin." placeholder:"ROLE"`
	door
}

// Run adds the user.
func (u *userAdd) Run(c console) error {
	role := access.Role(u.Role)
	if err := errors.Join(access.CheckUser(u.Name), access.CheckUserRole(role)); err != nil {
		return usageError{err}
	}
	password, err := askPassword(c, u.Name)
	if err != nil {
		return err
	}
	err = u.openOrMake(c, func(ctx context.Context, s *store.Store) error {
		hash, err := access.NewPasswords().Hash(ctx, password)
		if err != nil {
			return err
		}
		return s.Accounts.AddUser(ctx, time.Now(), access.User{Name: u.Name, Role: role, Password: hash}, commandLine())
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodPost, "users", map[string]string{"name": u.Name, "role": u.Role, "password": password}, nil)
	})
	return said(c, err, "%s is added as %s.", u.Name, u.Role)
}

// userList is dashboard user list.
type userList struct{ door }

// Run lists the users.
func (u *userList) Run(c console) error {
	var found struct {
		Users []struct {
			Name, Role string
			Created    time.Time `json:"created_at"`
		}
	}
	err := u.open(c, func(ctx context.Context, s *store.Store) error {
		users, err := s.Accounts.Users(ctx)
		for _, u := range users {
			found.Users = append(found.Users, struct {
				Name, Role string
				Created    time.Time `json:"created_at"`
			}{u.Name, string(u.Role), u.Created})
		}
		return err
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodGet, "users", nil, &found)
	})
	if err != nil {
		return refusalOr(err)
	}
	if len(found.Users) == 0 {
		fmt.Fprintln(c.stdout, "There is no user; nobody has to log in on this machine.")
		return nil
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tROLE\tSINCE")
	for _, u := range found.Users {
		fmt.Fprintf(w, "%s\t%s\t%s\n", u.Name, u.Role, day(u.Created))
	}
	return w.Flush()
}

// userRole is dashboard user role.
type userRole struct {
	Name string `arg:"" help:"The user."`
	Role string `required:"" help:"viewer, operator or admin." placeholder:"ROLE"`
	door
}

// Run changes the role.
func (u *userRole) Run(c console) error {
	role := access.Role(u.Role)
	if err := access.CheckUserRole(role); err != nil {
		return usageError{err}
	}
	err := u.open(c, func(ctx context.Context, s *store.Store) error {
		return s.Accounts.SetRole(ctx, time.Now(), u.Name, role, commandLine())
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodPost, "users/"+url.PathEscape(u.Name)+"/role", map[string]string{"role": u.Role}, nil)
	})
	return said(c, err, "%s is %s now, and has to log in again.", u.Name, u.Role)
}

// userPassword is dashboard user password.
type userPassword struct {
	Name string `arg:"" help:"The user."`
	door
}

// Run changes the password.
func (u *userPassword) Run(c console) error {
	password, err := askPassword(c, u.Name)
	if err != nil {
		return err
	}
	err = u.open(c, func(ctx context.Context, s *store.Store) error {
		hash, err := access.NewPasswords().Hash(ctx, password)
		if err != nil {
			return err
		}
		return s.Accounts.SetPassword(ctx, time.Now(), u.Name, hash, commandLine())
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodPost, "users/"+url.PathEscape(u.Name)+"/password", map[string]string{"password": password}, nil)
	})
	return said(c, err, "%s has a new password, and has to log in again.", u.Name)
}

// userRemove is dashboard user remove.
type userRemove struct {
	Name string `arg:"" help:"The user."`
	door
}

// Run removes the user.
func (u *userRemove) Run(c console) error {
	err := u.open(c, func(ctx context.Context, s *store.Store) error {
		return s.Accounts.RemoveUser(ctx, time.Now(), u.Name, commandLine())
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodPost, "users/"+url.PathEscape(u.Name)+"/remove", nil, nil)
	})
	return said(c, err, "%s is removed.", u.Name)
}

// said prints what was done, or returns why it was not.
func said(c console, err error, format string, args ...any) error {
	if err == nil {
		fmt.Fprintf(c.stdout, format+"\n", args...)
	}
	return refusalOr(err)
}

// refusalOr makes what was asked wrongly a usage error.
func refusalOr(err error) error {
	if errors.As(err, new(*access.Refusal)) || errors.Is(err, access.ErrUnknown) || errors.As(err, new(*db.LockedError)) {
		return usageError{err}
	}
	return err
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02")
}

// askPassword reads a password twice from a terminal that does not show it, or
// once from the first line of the standard input. It is never an argument:
// everybody on the machine sees those.
func askPassword(c console, name string) (string, error) {
	file, ok := c.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return firstLine(c.stdin)
	}
	first, err := askHidden(c, file, "Password for "+name+": ")
	if err != nil {
		return "", err
	}
	again, err := askHidden(c, file, "Once more: ")
	if err == nil && first != again {
		err = usage("the two passwords differ; nothing was changed")
	}
	return first, err
}

func askHidden(c console, terminal *os.File, prompt string) (string, error) {
	fmt.Fprint(c.stderr, prompt)
	text, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(c.stderr)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return checked(string(text))
}

func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return checked(strings.TrimRight(line, "\r\n"))
}

func checked(password string) (string, error) {
	if err := access.CheckPassword(password); err != nil {
		return "", usageError{err}
	}
	return password, nil
}

// lasting reads how long a token is to last.
func lasting(text string) (time.Duration, error) {
	d, err := wire.ParseGoDuration(text)
	if err == nil {
		err = access.CheckExpiry(d)
	}
	if err != nil {
		return 0, usage("--expires %s: %w", text, err)
	}
	return d, nil
}
