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
