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
	"redrive/internal/wire"
)

// tokenCommand is the commands about tokens.
type tokenCommand struct {
	Create tokenCreate `cmd:"" aliases:"add" help:"Create a token. It is shown once."`
	List   tokenList   `cmd:"" help:"List the tokens."`
	Revoke tokenRevoke `cmd:"" help:"Revoke a token immediately."`
}

// tokenCreate is dashboard token create.
type tokenCreate struct {
	Name    string      `required:"" help:"What the token is for, for example deploy. Shown in the audit log." placeholder:"NAME"`
	Role    access.Role `required:"" help:"producer (enqueues only), viewer, operator or admin." placeholder:"ROLE"`
	Expires string      `help:"How long the token is valid (${default})." default:"90d" placeholder:"DURATION"`
	reach.Accounts
}

// Run creates the token and prints it, alone on the standard output, so that a
// script can keep it.
func (t *tokenCreate) Run(c console.Console) error {
	if err := errors.Join(access.CheckToken(t.Name), access.CheckTokenRole(t.Role)); err != nil {
		return usage.Of(err)
	}

	lasts, err := wire.ParseDuration(t.Expires)
	if err == nil {
		err = access.CheckExpiry(lasts)
	}

	if err != nil {
		return usage.Errorf("--expires %s: %w", t.Expires, err)
	}

	var made admin.TokenMade

	err = t.Do(c, reach.Request{
		Method: http.MethodPost, Path: "tokens", Into: &made, Create: true,
		Send: admin.NewToken{Name: t.Name, Role: t.Role, Expires: wire.FormatDuration(lasts)},
		Local: func(ctx context.Context, s *store.Store) error {
			// Before there is a user, anyone may create tokens; the audit log says so.
			now, by := time.Now(), reach.CommandLine()
			by.Open = !s.Accounts.Guarded()
			n := access.Token{Name: t.Name, Role: t.Role, CreatedBy: by.Name, Expires: now.Add(lasts)}
			n.ID, made.Secret, n.Hash = access.NewToken()

			return s.Accounts.CreateToken(ctx, now, n, by)
		},
	})
	if err != nil {
		return err
	}

	fmt.Fprintln(c.Stderr, "Copy it now; it won't be shown again. Programs send it as Authorization: Bearer, commands read REDRIVE_TOKEN.")
	fmt.Fprintln(c.Stdout, made.Secret)

	return nil
}

// tokenList is dashboard token list. It shows no secret: the database has only
// their hashes.
type tokenList struct{ reach.Accounts }

// Run lists the tokens.
func (t *tokenList) Run(c console.Console) error {
	var found admin.TokenList

	err := t.Do(c, reach.Request{
		Method: http.MethodGet, Path: "tokens", Into: &found,
		Local: func(ctx context.Context, s *store.Store) error {
			tokens, err := s.Accounts.Tokens(ctx)
			for _, t := range tokens {
				found.Tokens = append(found.Tokens, admin.Token{
					ID:        t.ID,
					Name:      t.Name,
					Role:      t.Role,
					ExpiresAt: apitype.At(t.Expires),
					UsedAt:    apitype.At(t.Used),
					RevokedAt: apitype.At(t.Revoked),
				})
			}

			return err
		},
	})
	if err != nil {
		return err
	}

	// The state is for people; programs ask the API.
	rows := "ID\tNAME\tROLE\tEXPIRES\tLAST USED\tSTATE\n"
	for _, t := range found.Tokens {
		state := "valid"
		if !t.RevokedAt.IsZero() {
			state = "revoked"
		} else if !time.Now().Before(t.ExpiresAt.Time) {
			state = "expired"
		}

		expires, used := console.ToTheDay(t.ExpiresAt.Time), console.ToTheDay(t.UsedAt.Time)
		rows += fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Name, t.Role, expires, used, state)
	}

	return c.PrintTable(rows)
}

// tokenRevoke is dashboard token revoke. The id is a part of the token, so that it
// can be found for a token that leaked.
type tokenRevoke struct {
	ID string `arg:"" help:"The id, shown by token list and part of the token."`
	reach.Accounts
}

// Run revokes the token.
func (t *tokenRevoke) Run(c console.Console) error {
	return t.Change(c, reach.Request{
		Path: "tokens/" + url.PathEscape(t.ID) + "/revoke",
		Local: func(ctx context.Context, s *store.Store) error {
			return s.Accounts.RevokeToken(ctx, time.Now(), t.ID, reach.CommandLine())
		},
	}, "Revoked the token %s.", t.ID)
}
