package rig

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FailedJob is a row of Laravel's table of failed jobs.
type FailedJob struct{ UUID, Connection, Queue, Payload, Exception string }

// AttachedShop makes a database of Laravel in which these jobs failed, and no other. It
// returns the section of redrive.yaml that attaches it.
func AttachedShop(t *testing.T, dir, name string, failed []FailedJob) (section string) {
	t.Helper()
	path := ShopDatabase(t, dir)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`DELETE FROM failed_jobs`); err != nil {
		t.Fatal(err)
	}
	for _, j := range failed {
		const insert = `INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES (?, ?, ?, ?, ?, ?)`
		at := time.Now().UTC().Add(-time.Minute).Format(time.DateTime)
		if _, err := db.Exec(insert, j.UUID, j.Connection, j.Queue, j.Payload, j.Exception, at); err != nil {
			t.Fatal(err)
		}
	}
	address := url.URL{Scheme: "sqlite", Path: filepath.ToSlash(path)}
	return fmt.Sprintf("sources: {%s: {preset: laravel, url: %q, allow: [replay, discard], every: 1s}}\n", name, address.String())
}

// ShownSource is a source as the API shows it.
type ShownSource struct {
	Ready    bool
	Problem  string
	Polled   time.Time `json:"polled_at"`
	Returned int
	Queues   []struct {
		Name string
		Dead int `json:"dead_letters"`
	}
	Acts []struct{ Kind, State string }
}

// Dead is the number of dead letters in all queues of the source.
func (s ShownSource) Dead() (n int) {
	for _, q := range s.Queues {
		n += q.Dead
	}
	return n
}

// UntilSource waits until a source is as it should be.
func UntilSource(t *testing.T, url, name, what string, is func(ShownSource) bool) {
	t.Helper()
	late := time.Now().Add(3 * time.Minute)
	for {
		s := Get[ShownSource](t, url+"/api/v1/sources/"+name)
		if is(s) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s: the source is %+v", what, s)
		}
	}
}

// ActAtSource asks for an act on the first run of a job and waits until it has ended.
func ActAtSource(t *testing.T, url, name, id, kind string) {
	t.Helper()
	before := len(Get[ShownSource](t, url+"/api/v1/sources/"+name).Acts)
	response, err := http.Post(url+"/api/v1/jobs/"+id+"/"+kind, "application/json", strings.NewReader(`{"run": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the %s answered %s, %v", kind, response.Status, err)
	}
	UntilSource(t, url, name, "the act has ended", func(s ShownSource) bool {
		return len(s.Acts) == before+1 && s.Acts[0].Kind == kind && s.Acts[0].State != "asked" && s.Acts[0].State != "begun"
	})
}

// DeadLettersOf are the ids of the dead letters of a source.
func DeadLettersOf(t *testing.T, url, name string) (ids []string) {
	t.Helper()
	list := Get[struct {
		DeadLetters []struct{ Job struct{ ID string } } `json:"dead_letters"`
	}](t, url+"/api/v1/dead-letters?limit=200&q=source:"+name)
	for _, l := range list.DeadLetters {
		ids = append(ids, l.Job.ID)
	}
	return ids
}

// ShopDatabase is a database of Laravel with six failed jobs.
func ShopDatabase(t *testing.T, dir string) (path string) {
	t.Helper()
	dump, err := os.ReadFile("../../internal/source/testdata/laravel/sqlite-dump.sql")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "shop.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(string(dump) + ";UPDATE failed_jobs SET connection = 'database'"); err != nil { // some have failed on Redis
		t.Fatal(err)
	}
	return path
}
