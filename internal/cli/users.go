package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/admin"
	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/store"
	"redrive/internal/usage"
)

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
	reach.Accounts
}

// Run adds the user. The password is asked for once the flags are right.
func (u *userAdd) Run(c console.Console) error {
	if err := errors.Join(access.CheckUser(u.Name), access.CheckUserRole(u.Role)); err != nil {
		return usage.Of(err)
	}

	password, err := c.AskPassword(u.Name)
	if err != nil {
		return err
	}

	return u.Change(c, reach.Request{
		Path: "users", Send: admin.NewUser{Name: u.Name, Role: u.Role, Password: password}, Create: true,
		// What is done when no dashboard has the database open.
		Local: func(ctx context.Context, s *store.Store) error {
			hash, err := access.NewPasswords().Hash(ctx, password)
			if err != nil {
				return err
			}

			return s.Accounts.AddUser(ctx, time.Now(), access.User{Name: u.Name, Role: u.Role, Password: hash}, reach.CommandLine())
		},
	}, "Added %s as %s.", u.Name, u.Role)
}

// userList is dashboard user list.
type userList struct{ reach.Accounts }

// Run lists the users.
func (u *userList) Run(c console.Console) error {
	var found admin.UserList

	err := u.Do(c, reach.Request{
		Method: http.MethodGet, Path: "users", Into: &found,
		Local: func(ctx context.Context, s *store.Store) error {
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
		rows += fmt.Sprintf("%s\t%s\t%s\n", u.Name, u.Role, console.ToTheDay(u.CreatedAt.Time))
	}

	return c.PrintTable(rows)
}

// userRole is dashboard user role. The store refuses to take the role from the only
// admin.
type userRole struct {
	Name string      `arg:"" help:"The user."`
	Role access.Role `required:"" help:"viewer, operator or admin." placeholder:"ROLE"`
	reach.Accounts
}

// Run changes the role.
func (u *userRole) Run(c console.Console) error {
	if err := access.CheckUserRole(u.Role); err != nil {
		return usage.Of(err)
	}

	return u.Change(c, reach.Request{
		Path: "users/" + url.PathEscape(u.Name) + "/role", Send: map[string]any{"role": u.Role},
		Local: func(ctx context.Context, s *store.Store) error {
			return s.Accounts.SetRole(ctx, time.Now(), u.Name, u.Role, reach.CommandLine())
		},
	}, "%s is now %s and has to log in again.", u.Name, u.Role)
}

// userPassword is dashboard user password. It asks for the new password as user
// add does.
type userPassword struct {
	Name string `arg:"" help:"The user."`
	reach.Accounts
}

// Run changes the password.
func (u *userPassword) Run(c console.Console) error {
	password, err := c.AskPassword(u.Name)
	if err != nil {
		return err
	}

	return u.Change(c, reach.Request{
		Path: "users/" + url.PathEscape(u.Name) + "/password", Send: map[string]any{"password": password},
		Local: func(ctx context.Context, s *store.Store) error {
			hash, err := access.NewPasswords().Hash(ctx, password)
			if err != nil {
				return err
			}

			return s.Accounts.SetPassword(ctx, time.Now(), u.Name, hash, reach.CommandLine())
		},
	}, "%s has a new password and has to log in again.", u.Name)
}

// userRemove is dashboard user remove. The store refuses to remove the only admin.
type userRemove struct {
	Name string `arg:"" help:"The user."`
	reach.Accounts
}

// Run removes the user.
func (u *userRemove) Run(c console.Console) error {
	return u.Change(c, reach.Request{
		Path: "users/" + url.PathEscape(u.Name) + "/remove",
		Local: func(ctx context.Context, s *store.Store) error {
			return s.Accounts.RemoveUser(ctx, time.Now(), u.Name, reach.CommandLine())
		},
	}, "Removed %s.", u.Name)
}
