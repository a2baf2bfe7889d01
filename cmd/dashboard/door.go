package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
)

// A door leads to users and tokens: into the database itself while no dashboard
// runs on it, else through the API of the one that does, which takes an admin's
// token unless nobody has to log in yet.
type door struct {
	DB     string `name:"db" help:"Database file (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"FILE"`
	Server string `help:"Where the dashboard is (the one that has the database open). An admin's token goes into REDRIVE_TOKEN." placeholder:"URL"`
}

const doorPatience = 30 * time.Second

// open calls local with the open database, which must be there, or remote with
// the API: a slip of the pen makes no database.
func (d door) open(c console, local func(context.Context, *store.Store) error, remote func(context.Context, api) error) error {
	if d.Server == "" {
		if _, err := os.Stat(d.DB); errors.Is(err, fs.ErrNotExist) {
			return usage("--db %s: there is no such file; name the database", d.DB)
		}
	}
	return d.openOrMake(c, local, remote)
}

// openOrMake does so with a database that may be new.
func (d door) openOrMake(c console, local func(context.Context, *store.Store) error, remote func(context.Context, api) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), doorPatience)
	defer cancel()
	if d.Server != "" {
		return through(ctx, d.Server, remote)
	}
	s, err := store.Open(ctx, store.Options{Database: sqlite.File{Path: d.DB}})
	var locked *db.LockedError
	if errors.As(err, &locked) && locked.URL != "" {
		fmt.Fprintf(c.stderr, "%s is in use by the process with pid %d; asking it at %s.\n", d.DB, locked.PID, locked.URL)
		return through(ctx, locked.URL, remote)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return local(ctx, s)
}

func through(ctx context.Context, server string, remote func(context.Context, api) error) error {
	a, err := newAPI(server)
	if err != nil {
		return err
	}
	return remote(ctx, a)
}

// commandLine is who acts on the database itself.
func commandLine() audit.Actor { return audit.Actor{Name: "command line"} }

// api is the API of a running dashboard.
type api struct {
	base  *url.URL
	token string
}

// newAPI reads the token from the environment: a command line is seen by
// everybody on the machine.
func newAPI(server string) (api, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return api{}, usage("--server %q is not an address as http://127.0.0.1:8080", server)
	}
	token, set := os.LookupEnv("REDRIVE_TOKEN")
	if token = strings.TrimSpace(token); set && token == "" {
		return api{}, usage("REDRIVE_TOKEN is empty; write the token into it, or unset it")
	}
	return api{base.JoinPath("api/v1"), token}, nil
}

// do sends a request. The answer is the caller's to close.
func (a api) do(r *http.Request) (*http.Response, error) {
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	client := http.Client{Timeout: doorPatience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(r)
}

// call sends a document and reads the answer into one.
func (a api) call(ctx context.Context, method, path string, send, into any) error {
	var body io.Reader
	if send != nil {
		data, err := json.Marshal(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base.JoinPath(path).String(), body)
	if err != nil {
		return err
	}
	if send != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := a.do(r)
	if err != nil {
		return fmt.Errorf("ask the dashboard: %w; is one running there?", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return fmt.Errorf("read the dashboard's answer: %w", err)
	}
	return understand(response, data, into)
}

// understand reads an answer, or says what the dashboard did not like.
func understand(response *http.Response, data []byte, into any) error {
	if response.StatusCode < http.StatusMultipleChoices {
		if into == nil {
			return nil
		}
		return json.Unmarshal(data, into)
	}
	var answer struct {
		Error struct{ Field, Message string }
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Error.Message == "" {
		return fmt.Errorf("%s answered %s, which is no dashboard's answer", response.Request.URL.Host, response.Status)
	}
	text := strings.TrimPrefix(answer.Error.Field+": "+answer.Error.Message, ": ")
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return usage("the dashboard at %s asks who you are: put a token whose role may do this into REDRIVE_TOKEN", response.Request.URL.Host)
	case response.StatusCode == http.StatusNotFound && strings.HasPrefix(answer.Error.Message, "there is nothing at this address"):
		return usage("there is no dashboard's API at %s; has it a path of its own (--base-path)?", response.Request.URL)
	case response.StatusCode < http.StatusInternalServerError:
		return usage("refused: %s", text)
	}
	return fmt.Errorf("the dashboard failed: %s", text)
}
