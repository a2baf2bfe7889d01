//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source/redissource/redistest"
)

// laravel imitates an application in Laravel whose queue is in SQLite. It is a foreign.
type laravel struct {
	file string
	db   *sql.DB
}

// The tables, as Laravel's migrations make them.
const laravelTables = `
CREATE TABLE jobs (id integer not null primary key autoincrement, queue varchar not null, payload text not null,
	attempts integer not null, reserved_at integer, available_at integer not null, created_at integer not null);
CREATE TABLE failed_jobs (id integer not null primary key autoincrement, uuid varchar not null, connection text not null,
	queue text not null, payload text not null, exception text not null, failed_at datetime default CURRENT_TIMESTAMP not null);
CREATE UNIQUE INDEX failed_jobs_uuid_unique on failed_jobs (uuid);`

func newLaravel(t *testing.T) *laravel {
	t.Helper()
	l := &laravel{file: filepath.Join(t.TempDir(), "outlet.sqlite")}
	options := url.Values{"_pragma": {"journal_mode(wal)", "busy_timeout(60000)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+l.file+"?"+options.Encode())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1)
	l.db = db

	if _, err := db.Exec(laravelTables); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *laravel) section() string {
	address := url.URL{Scheme: "sqlite", Path: l.file}
	return fmt.Sprintf("preset: laravel, url: %q", address.String())
}

const uuidPrefix = "00000000-0000-4000-8000-"

func (l *laravel) number(uuid string) (int, error) {
	if len(uuid) <= len(uuidPrefix) {
		return 0, fmt.Errorf("%q is not the uuid of a job", uuid)
	}
	return strconv.Atoi(uuid[len(uuidPrefix):])
}

func (l *laravel) die(n int) error {
	const class = `App\Jobs\Order`
	payload, err := json.Marshal(map[string]any{
		"uuid": fmt.Sprintf("%s%012d", uuidPrefix, n), "displayName": class, "job": `Illuminate\Queue\CallQueuedHandler@call`, "maxTries": 1,
		"data": map[string]any{"commandName": class, "command": fmt.Sprintf(`O:%d:"%s":1:{s:5:"order";i:%d;}`, len(class), class, n)},
	})
	if err != nil {
		return err
	}
	_, err = l.db.Exec(insertFailed, fmt.Sprintf("%s%012d", uuidPrefix, n), payload, time.Now().UTC().Format(time.DateTime))
	return err
}

const insertFailed = `INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
	VALUES (?, 'database', 'orders', CAST(? AS TEXT), 'App\Warehouse\Unavailable: 503 in /srv/outlet/app/Client.php:57', ?)`

func (l *laravel) work(fails func(int) bool) (n int, found bool, err error) {
	tx, err := l.db.BeginTx(context.Background(), nil)
	if err != nil {
		return 0, false, err
	}
	defer func() {
		if rolledBack := tx.Rollback(); !errors.Is(rolledBack, sql.ErrTxDone) {
			err = errors.Join(err, rolledBack)
		}
	}()

	var id int64
	var payload []byte
	var uuid string
	err = tx.QueryRow(`SELECT id, payload, json_extract(payload, '$.uuid') FROM jobs WHERE available_at <= unixepoch() ORDER BY id LIMIT 1`).
		Scan(&id, &payload, &uuid)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	n, err = l.number(uuid)
	if err != nil {
		return 0, false, err
	}

	if _, err := tx.Exec(`DELETE FROM jobs WHERE id = ?`, id); err != nil {
		return 0, false, err
	}
	if fails(n) {
		if _, err := tx.Exec(insertFailed, uuid, payload, time.Now().UTC().Format(time.DateTime)); err != nil {
			return 0, false, err
		}
	}
	return n, true, tx.Commit()
}

func (l *laravel) dead() (map[int]bool, error) {
	rows, err := l.db.Query(`SELECT uuid FROM failed_jobs`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	dead := map[int]bool{}
	for rows.Next() {
		var uuid string
		if err := rows.Scan(&uuid); err != nil {
			return nil, err
		}
		n, err := l.number(uuid)
		if err != nil {
			return nil, err
		}
		dead[n] = true
	}
	return dead, rows.Err()
}

func (l *laravel) waiting() (n int, err error) {
	err = l.db.QueryRow(`SELECT count(*) FROM jobs`).Scan(&n)
	return n, err
}

// sidekiq imitates an application in Ruby whose queue is in Redis. It is a foreign.
type sidekiq struct{ client *redis.Client }

// newSidekiq starts a Redis; nil where none is installed.
func newSidekiq(t *testing.T) *sidekiq {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil
	}
	return &sidekiq{redistest.Start(t)}
}

func (s *sidekiq) section() string {
	return fmt.Sprintf("preset: sidekiq, url: %q", redistest.URL(s.client))
}

func (s *sidekiq) number(jid string) (int, error) { return strconv.Atoi(jid) }

func (s *sidekiq) die(n int) error {
	return s.bury(fmt.Sprintf("%024d", n), []any{n}, time.Now())
}

// bury writes a job among the dead letters, as Sidekiq does after its last attempt.
func (s *sidekiq) bury(jid string, args []any, at time.Time) error {
	seconds := float64(at.UnixMicro()) / 1e6
	job, err := json.Marshal(map[string]any{
		"class": "Mail::SendJob", "jid": jid, "queue": "mail", "args": args, "retry": 0, "retry_count": 0, "created_at": seconds,
		"enqueued_at": seconds, "failed_at": seconds, "error_class": "Net::ReadTimeout", "error_message": "Net::ReadTimeout",
	})
	if err != nil {
		return err
	}
	pipe := s.client.TxPipeline()
	pipe.SAdd(context.Background(), "queues", "mail")
	pipe.ZAdd(context.Background(), "dead", redis.Z{Score: seconds, Member: job})
	_, err = pipe.Exec(context.Background())
	return err
}

func (s *sidekiq) work(fails func(int) bool) (n int, found bool, err error) {
	text, err := s.client.RPop(context.Background(), "queue:mail").Bytes()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}

	var job struct {
		JID  string
		Args []any
	}
	if err := json.Unmarshal(text, &job); err != nil {
		return 0, false, fmt.Errorf("the job %q: %w", text, err)
	}
	n, err = s.number(job.JID)
	if err == nil && fails(n) {
		err = s.bury(job.JID, job.Args, time.Now())
	}
	return n, err == nil, err
}

func (s *sidekiq) dead() (map[int]bool, error) {
	members, err := s.client.ZRange(context.Background(), "dead", 0, -1).Result()
	if err != nil {
		return nil, err
	}
	dead := map[int]bool{}
	for _, member := range members {
		var job struct{ JID string }
		if err := json.Unmarshal([]byte(member), &job); err != nil {
			return nil, err
		}
		n, err := s.number(job.JID)
		if err != nil {
			return nil, err
		}
		dead[n] = true
	}
	return dead, nil
}

func (s *sidekiq) waiting() (int, error) {
	n, err := s.client.LLen(context.Background(), "queue:mail").Result()
	return int(n), err
}
