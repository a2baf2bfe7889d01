package preset_test

import (
	"slices"
	"strings"
	"testing"

	"redrive/internal/source/preset"
)

// schemes are all that a URL of a source can have, with the family or the engine that reads it.
var schemes = map[string]string{
	"amqp": "amqp", "amqps": "amqp", "redis": "redis", "rediss": "redis", "unix": "redis",
	"sqlite": "sqlite", "postgres": "postgres", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql",
	"http": "", "file": "",
}

func TestCheckURL_TakesTheServersOfThePresetAndNoOthers(t *testing.T) {
	for name, p := range preset.All() {
		for scheme, reads := range schemes {
			address := scheme + "://redrive:hunter2@db.internal/shop"
			if scheme == "sqlite" {
				address = "sqlite:///srv/shop.db"
			}
			fits := reads != "" && (p.Family == reads || p.Family == "sql" && slices.Contains(p.Engines, reads))

			err := p.CheckURL(address)
			if fits && err != nil {
				t.Errorf("%s refuses %s: %v", name, address, err)
			}
			if fits {
				continue
			}
			if err == nil {
				t.Errorf("%s takes %s", name, address)
				continue
			}
			for _, want := range []string{"the preset " + name + " reads ", "url must begin with "} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s refuses %s with %q, without %q", name, address, err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s shows the password: %q", name, err)
			}
		}
	}
}

func TestCheckURL_SaysWhatAURLMustBeginWith(t *testing.T) {
	for _, tt := range []struct{ preset, url, want string }{
		{"sidekiq", "postgres://db/shop", "the preset sidekiq reads Redis: url must begin with redis://, rediss:// or unix://"},
		{"rabbitmq", "redis://db", "the preset rabbitmq reads RabbitMQ: url must begin with amqp:// or amqps://"},
		{"river", "redis://db", "the preset river reads PostgreSQL: url must begin with postgres:// or postgresql://"},
		{"initphp", "redis://db", "the preset initphp reads SQLite, MySQL or MariaDB: url must begin with sqlite:///, mysql:// or mariadb://"},
		{"laravel", "sqlite://x", "the preset laravel reads SQLite, PostgreSQL, MySQL or MariaDB: url must begin with " +
			"sqlite:///, postgres://, postgresql://, mysql:// or mariadb://; a file needs three slashes, because its path begins at the root, as in sqlite:///srv/app.db"},
		{"river", "hunter2", "the preset river reads PostgreSQL: url must begin with postgres:// or postgresql://"},
	} {
		err := preset.All()[tt.preset].CheckURL(tt.url)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s, %s: %v", tt.preset, tt.url, err)
		}
	}
}

func TestCheckWorkURL_TakesRedisOnly(t *testing.T) {
	p := preset.All()["laravel-redis"]
	if err := p.CheckWorkURL("rediss://redis.internal/0"); err != nil {
		t.Error(err)
	}
	const want = "the queue of the preset laravel-redis is in Redis: work_url must begin with redis://, rediss:// or unix://"
	if err := p.CheckWorkURL("mysql://db/shop"); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestAddress_TellsPlacesApart(t *testing.T) {
	named := func(name, value string) preset.Settings {
		return preset.Settings{Names: map[string]string{name: value}}
	}
	queue := preset.Settings{Queues: []string{"mail.dlq"}}
	for _, tt := range []struct {
		preset, url string
		settings    preset.Settings
		want        string
	}{
		{"laravel", "mysql://ana:hunter2@DB.internal:3306/shop?tls=true", preset.Settings{}, "db.internal/shop, table failed_jobs"},
		{"laravel", "mariadb://db.internal/shop", preset.Settings{}, "db.internal/shop, table failed_jobs"},
		{"laravel", "mysql://ana@/shop?socket=/run/mysqld.sock", preset.Settings{}, "/run/mysqld.sock/shop, table failed_jobs"},
		{"laravel", "mysql://db.internal:3307/shop", named("table", "dead"), "db.internal:3307/shop, table dead"},
		{"laravel", "sqlite:///srv/shop.db?mode=ro", preset.Settings{}, "/srv/shop.db, table failed_jobs"},
		{"river", "postgres://ana:hunter2@db.internal:5432/shop?sslmode=verify-full", preset.Settings{}, "db.internal/shop, table river_job"},
		{"river", "postgresql://b.internal,a.internal/shop", preset.Settings{}, "a.internal,b.internal/shop, table river_job"},
		{"river", "postgres://b.internal:5432,a.internal:5433/shop", preset.Settings{}, "a.internal:5433,b.internal/shop, table river_job"},
		{"river", "postgres://db.internal/shop?port=5433", preset.Settings{}, "db.internal:5433/shop, table river_job"},
		{"river", "postgres:///?host=/run/postgresql&dbname=shop&password=hunter2", preset.Settings{}, "/run/postgresql/shop, table river_job"},
		{"solid-queue", "postgres://[::1]:5433/shop", preset.Settings{}, "[::1]:5433/shop, table solid_queue_failed_executions"},
		{"sidekiq", "rediss://:hunter2@redis.internal:6379", preset.Settings{}, "redis.internal/0, key dead"},
		{"sidekiq", "redis://redis.internal/3", named("prefix", "shop:"), "redis.internal/3, key shop:dead"},
		{"sidekiq", "unix:///run/redis.sock?db=2", preset.Settings{}, "/run/redis.sock/2, key dead"},
		{"bullmq", "redis://redis.internal?db=1", preset.Settings{}, "redis.internal/1, key bull:{queue}:failed"},
		{"asynq", "redis://redis.internal", preset.Settings{}, "redis.internal/0, key asynq:{{queue}}:archived"},
		{"keys", "redis://redis.internal", named("list", "dead:{queue}"), "redis.internal/0, key dead:{queue}"},
		{"rabbitmq", "amqp://ana:hunter2@rabbit.internal", queue, "rabbit.internal, virtual host /"},
		{"rabbitmq", "amqps://rabbit.internal:5671/%2f", queue, "rabbit.internal, virtual host /"},
		{"rabbitmq", "amqp://rabbit.internal/shop", queue, "rabbit.internal, virtual host shop"},
		{"laravel", "mysql://%zz", preset.Settings{}, ""},
	} {
		if got := preset.All()[tt.preset].Address(tt.url, tt.settings); got != tt.want {
			t.Errorf("%s at %s is %q, want %q", tt.preset, tt.url, got, tt.want)
		}
	}
}

// A preset without a table or a key in its address would not tell two of them apart.
func TestAddress_NamesWhatEachPresetReads(t *testing.T) {
	own := map[string]preset.Settings{
		"table": {Names: map[string]string{"table": "jobs"}}, "keys": {Names: map[string]string{"list": "dead"}},
	}
	urls := map[string]string{"sql": "postgres://db/x", "redis": "redis://db"}
	for name, p := range preset.All() {
		if p.Family == "amqp" {
			continue
		}
		address := p.Address(urls[p.Family], own[name])
		if address == "" || strings.HasSuffix(address, "table ") || strings.HasSuffix(address, "key ") {
			t.Errorf("%s is at %q", name, address)
		}
	}
}
