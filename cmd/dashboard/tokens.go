package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"redrive/internal/access"
	"redrive/internal/store"
	"redrive/internal/wire"
)

// tokenCommand is the commands about tokens.
type tokenCommand struct {
	Create tokenCreate `cmd:"" help:"Create a token. It is shown once."`
	List   tokenList   `cmd:"" help:"List the tokens."`
	Revoke tokenRevoke `cmd:"" help:"Revoke a token, at once."`
}

// tokenCreate is dashboard token create.
type tokenCreate struct {
	Name    string `required:"" help:"What it is for, as deploy: histories show it." placeholder:"NAME"`
	Role    string `required:"" help:"producer (enqueues only), viewer, operator or admin." placeholder:"ROLE"`
	Expires string `help:"How long it lasts (${default})." default:"90d" placeholder:"DURATION"`
	door
}

// Run creates the token and prints it.
func (t *tokenCreate) Run(c console) error {
	role := access.Role(t.Role)
	if err := errors.Join(access.CheckToken(t.Name), access.CheckTokenRole(role)); err != nil {
		return usageError{err}
	}
	lasts, err := lasting(t.Expires)
	if err != nil {
		return err
	}
	var made struct{ Secret string }
	err = t.openOrMake(c, func(ctx context.Context, s *store.Store) error {
		now, by := time.Now(), commandLine()
		by.Open = !s.Accounts.Guarded()
		n := access.Token{Name: t.Name, Role: role, CreatedBy: by.Name, Expires: now.Add(lasts)}
		n.ID, made.Secret, n.Hash = access.NewToken()
		return s.Accounts.CreateToken(ctx, now, n, by)
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodPost, "tokens",
			map[string]string{"name": t.Name, "role": t.Role, "expires": wire.FormatDuration(lasts)}, &made)
	})
	if err != nil {
		return refusalOr(err)
	}
	fmt.Fprintln(c.stderr, "This is the token. It is not shown again; programs send it as Authorization: Bearer, or have it in REDRIVE_TOKEN.")
	fmt.Fprintln(c.stdout, made.Secret)
	return nil
}

// tokenList is dashboard token list.
type tokenList struct{ door }

// listed is a token as the API shows it.
type listed struct {
	ID, Name, Role string
	Expires        time.Time `json:"expires_at"`
	Used           time.Time `json:"used_at"`
	Revoked        time.Time `json:"revoked_at"`
}

// Run lists the tokens.
func (t *tokenList) Run(c console) error {
	var found struct{ Tokens []listed }
	err := t.open(c, func(ctx context.Context, s *store.Store) error {
		tokens, err := s.Accounts.Tokens(ctx)
		for _, t := range tokens {
			found.Tokens = append(found.Tokens, listed{t.ID, t.Name, string(t.Role), t.Expires, t.Used, t.Revoked})
		}
		return err
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodGet, "tokens", nil, &found)
	})
	if err != nil {
		return refusalOr(err)
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tROLE\tUNTIL\tLAST USED\tSTATE")
	for _, t := range found.Tokens {
		state := "good"
		if !t.Revoked.IsZero() {
			state = "revoked"
		} else if !time.Now().Before(t.Expires) {
			state = "expired"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Name, t.Role, day(t.Expires), day(t.Used), state)
	}
	return w.Flush()
}

// tokenRevoke is dashboard token revoke.
type tokenRevoke struct {
	ID string `arg:"" help:"The id, as token list shows it and as it stands in the token."`
	door
}

// Run revokes the token.
func (t *tokenRevoke) Run(c console) error {
	err := t.open(c, func(ctx context.Context, s *store.Store) error {
		return s.Accounts.RevokeToken(ctx, time.Now(), t.ID, commandLine())
	}, func(ctx context.Context, a api) error {
		return a.call(ctx, http.MethodPost, "tokens/"+url.PathEscape(t.ID)+"/revoke", nil, nil)
	})
	return said(c, err, "The token %s lets nobody in any more.", t.ID)
}
