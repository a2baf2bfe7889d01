package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"redrive/internal/client"
)

// answering returns a client of a service that gives one answer to everything.
func answering(t *testing.T, status int, body string) *client.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s has the wrong token", r.Method, r.URL)
		}
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	c, err := client.New(s.URL + "/below")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = "secret"
	return c
}

func TestNew_TakesAddressesOnly(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:8080", "ftp://host", "http://"} {
		if _, err := client.New(address); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
	c, err := client.New("https://host/redrive")
	if err != nil || c.URL("jobs") != "https://host/redrive/api/v1/jobs" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestCall_ReadsTheAnswer(t *testing.T) {
	var answer struct{ Name string }
	c := answering(t, http.StatusOK, `{"name": "ana"}`)
	if err := c.Call(t.Context(), http.MethodGet, "users", nil, &answer); err != nil || answer.Name != "ana" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestCall_SaysWhatWasRefused(t *testing.T) {
	for _, answer := range []struct {
		status     int
		body, want string
		refused    bool
	}{
		{400, `{"error": {"field": "role", "message": "is unknown"}}`, "refused: role: is unknown", true},
		{401, `{"error": {"message": "log in"}}`, "REDRIVE_TOKEN", true},
		{404, `{"error": {"message": "nothing exists at this address"}}`, "--base-path", true},
		{503, `{"error": {"message": "the disk is full"}}`, "the dashboard failed: the disk is full", false},
		{502, `<html>`, "which is not the answer of a dashboard", false},
	} {
		err := answering(t, answer.status, answer.body).Call(t.Context(), http.MethodPost, "users", map[string]string{}, nil)
		var refusal *client.Error
		if err == nil || !strings.Contains(err.Error(), answer.want) || answer.refused != (errors.As(err, &refusal) && refusal.Refused()) {
			t.Errorf("%d: %v", answer.status, err)
		}
	}
}

func TestEnqueue_TellsARepeatedKey(t *testing.T) {
	for status, repeat := range map[int]bool{http.StatusOK: true, http.StatusCreated: false} {
		made, err := answering(t, status, `{"job": {"id": "1"}, "warning": "w"}`).Enqueue(t.Context(), []byte(`{}`), "key")
		if err != nil || len(made.Jobs) != 1 || string(made.Jobs[0]) != `{"id": "1"}` || made.Warning != "w" || made.Repeat != repeat {
			t.Errorf("%d: %+v, %v", status, made, err)
		}
	}
	if _, err := answering(t, http.StatusOK, `{}`).Enqueue(t.Context(), []byte(`{}`), ""); err == nil {
		t.Error("an answer without a job is one")
	}
}

func TestEnqueueBatch_SendsEachJobAsItIs(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = r.URL.Path + " " + string(body)
		w.WriteHeader(http.StatusCreated)
		w.Write([]byte(`{"jobs": [{"id": "1"}, {"id": "2"}]}`))
	}))
	defer s.Close()
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.EnqueueBatch(t.Context(), [][]byte{[]byte(`{"n": 1.0}`), []byte(`{ }`)}, "")
	if want := `/api/v1/jobs/batch {"jobs":[{"n": 1.0},{ }]}`; err != nil || got != want || len(made.Jobs) != 2 {
		t.Errorf("it sent %s, want %s: %v", got, want, err)
	}
}

// What the command line asks for is done once: a dashboard that dies before it answers
// must not be asked again without a word.
func TestClient_AsksOnceAlthoughTheDashboardDies(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") == "Bearer last" {
			asked.Add(1)
			panic(http.ErrAbortHandler) // closes the connection
		}
		_, _ = io.WriteString(w, `{"job": {"id": "1"}}`)
	}))
	defer s.Close()
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	enqueue := func() error {
		_, err := c.Enqueue(t.Context(), []byte(`{"type": "a"}`), "key")
		return err
	}
	pause := func() error { return c.Call(t.Context(), http.MethodPost, "queues/mail/pause", nil, nil) }
	read := func() error { return c.Call(t.Context(), http.MethodGet, "queues", nil, nil) }
	for name, call := range map[string]func() error{"enqueue": enqueue, "pause": pause, "read": read} {
		c.Token = "first"
		if err := call(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		asked.Store(0)
		c.Token = "last"
		if err := call(); err == nil || client.Unchanged(err) || asked.Load() != 1 {
			t.Errorf("%s: asked %d times, %v", name, asked.Load(), err)
		}
	}
}

// An answer that breaks off is one of a dashboard all the same, which may have stored the job.
func TestClient_SaysThatAnAnswerBrokeOff(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		length string
		body   string
	}{
		"in its body":           {http.StatusCreated, "500", `{"job": {"id": "1"`},
		"before its body":       {http.StatusCreated, "500", ``},
		"without a length":      {http.StatusCreated, "", `{"job": {"id": "1"`},
		"of a failure":          {http.StatusServiceUnavailable, "500", `{"error": {"mess`},
		"of one that was there": {http.StatusOK, "500", `{"job": `},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer.length != "" {
				w.Header().Set("Content-Length", answer.length)
			}
			w.WriteHeader(answer.status)
			_, _ = io.WriteString(w, answer.body)
		}))
		c, err := client.New(s.URL)
		if err != nil {
			t.Fatal(err)
		}

		_, enqueued := c.Enqueue(t.Context(), []byte(`{"type": "a"}`), "")
		called := c.Call(t.Context(), http.MethodGet, "queues", nil, &struct{}{})
		want := http.StatusText(answer.status) + ", but its answer broke off"
		for _, err := range []error{enqueued, called} {
			if err == nil || !strings.Contains(err.Error(), want) || client.Unchanged(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		s.Close()
	}
}
