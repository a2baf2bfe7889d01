package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/httpclient"
	"redrive/internal/source"
	"redrive/internal/source/preset"
)

const sourcesFile = `
sources:
  shop:
    preset: laravel
    url: mysql://redrive:secret@db.internal/shop
    allow: [replay]
    every: 30s
    table: shop_failed_jobs
    zone: Europe/Berlin
  mail:
    preset: rabbitmq
    url: amqp://redrive:secret@rabbit.internal/shop
    queues: [mail.dlq, "orders dead"]
    quorum: allow
  legacy:
    preset: table
    url: sqlite:///srv/legacy.db
    allow: [replay, discard]
    table: dead
    key: id
    payload: body
    replay:
      - INSERT INTO work (body) SELECT body FROM {table} WHERE id = :key
      - DELETE FROM {table} WHERE id = :key AND id = :witness
    discard:
      - DELETE FROM {table} WHERE id = :key AND id = :witness
`

func TestSources_AreRead(t *testing.T) {
	c, err := Parse("redrive.yaml", []byte(sourcesFile))
	if err != nil {
		t.Fatal(err)
	}
	all := c.Sources()
	if len(all) != 3 {
		t.Fatalf("%d sources", len(all))
	}
	shop := all[slices.IndexFunc(all, func(s Source) bool { return s.Name == "shop" })]
	if shop.Preset.Name != "laravel" || shop.Every != 30*time.Second || !slices.Equal(shop.Allow, []source.Kind{source.Replay}) ||
		shop.Settings.Names["table"] != "shop_failed_jobs" || shop.Settings.Zone != "Europe/Berlin" {
		t.Errorf("%+v", shop)
	}
	mail := all[slices.IndexFunc(all, func(s Source) bool { return s.Name == "mail" })]
	if mail.Every != 5*time.Minute || !slices.Equal(mail.Settings.Queues, []string{"mail.dlq", "orders dead"}) || mail.Settings.Values["quorum"] != preset.Allow {
		t.Errorf("every %s, %+v", mail.Every, mail.Settings)
	}
	legacy := all[slices.IndexFunc(all, func(s Source) bool { return s.Name == "legacy" })]
	if len(legacy.Settings.Replay) != 2 || len(legacy.Settings.Discard) != 1 {
		t.Errorf("%+v", legacy.Settings)
	}
}

func TestSources_WhatIsWrongIsSaid(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"no preset", "sources: {shop: {url: 'sqlite:///x'}}", "needs a preset"},
		{"another preset", "sources: {shop: {preset: quux, url: 'sqlite:///x'}}", "is not a preset"},
		{"no URL", "sources: {shop: {preset: laravel}}", "needs exactly one of url"},
		{"a bad name", "sources: {Shop: {preset: laravel, url: 'sqlite:///x'}}", "is not a source name"},
		{"too often", "sources: {shop: {preset: laravel, url: 'sqlite:///x', every: 10ms}}", "too often"},
		{"another field", "sources: {shop: {preset: laravel, url: 'sqlite:///x', channel: y}}", "channel"},
		{"an act without its guard", "sources: {shop: {preset: table, url: 'sqlite:///x', table: dead, discard: ['DELETE FROM dead WHERE id = :key']}}",
			"must compare :witness"},
		{"an act without statements", "sources: {shop: {preset: table, url: 'sqlite:///x', table: dead, allow: [replay]}}",
			"there are no statements for that"},
		{"no queue in Redis", "sources: {shop: {preset: laravel-redis, url: 'sqlite:///x'}}", "needs exactly one of work_url"},
		{"a queue in the database", "sources: {shop: {preset: laravel, url: 'sqlite:///x', work_url: 'redis://x'}}", "work_url"},
		{"two keys", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, sorted_set: dead}}", "exactly one of list and sorted_set"},
		{"a replay to nowhere", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, allow: [replay]}}", "add a field work"},
		{"a hash without a witness", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, hash: 'job:{id}', payload: body}}",
			"needs the fields witness and payload"},
		{"a hash for all", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, hash: job, witness: at, payload: body}}", "needs {id}"},
		{"a witness of bytes", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, witness: at}}", "known by its bytes"},
		{"a queue that nothing tells", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, work: 'w:{queue}', hash: 'job:{id}', witness: at, payload: body}}",
			"nothing tells the queue"},
		{"Lua in a name", `sources: {shop: {preset: keys, url: 'redis://x', list: dead, hash: 'job:{id}', payload: body, witness: "a') os.exit("}}`,
			"characters other than"},
		{"another side", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, push: up}}", "use left or right"},
		{"statements in Redis", "sources: {shop: {preset: keys, url: 'redis://x', list: dead, replay: ['x']}}", "replay"},
		{"no dead-letter queues", "sources: {shop: {preset: rabbitmq, url: 'amqp://x'}}", "needs a field queues"},
		{"a work queue", "sources: {shop: {preset: initphp-amqp, url: 'amqp://x', queues: [orders]}}", "is not the name of a dead-letter queue"},
		{"the suffix alone", "sources: {shop: {preset: initphp-amqp, url: 'amqp://x', queues: [.failed]}}", "is not the name of a dead-letter queue"},
		{"another answer", "sources: {shop: {preset: rabbitmq, url: 'amqp://x', queues: [a], quorum: maybe}}", "use refuse or allow"},
		{"a database for Redis", "sources: {shop: {preset: sidekiq, url: 'postgres://u:hunter2@db/shop'}}",
			"the preset sidekiq reads Redis: url must begin with redis://"},
		{"a file with two slashes", "sources: {shop: {preset: laravel, url: 'sqlite://x'}}", "a file needs three slashes"},
		{"a queue of Laravel elsewhere", "sources: {shop: {preset: laravel-redis, url: 'sqlite:///x', work_url: 'mysql://x'}}",
			"work_url must begin with redis://"},
		{"another zone", "sources: {shop: {preset: laravel, url: 'sqlite:///x', zone: Mars/Base}}", "is not a time zone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("redrive.yaml", []byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSources_OfTheDocumentsCanBeUsed reads every configuration in a document, which has
// one for each preset of its family.
func TestSources_OfTheDocumentsCanBeUsed(t *testing.T) {
	for family, document := range map[string]string{"sql": "sources.md", "redis": "sources-redis.md", "amqp": "sources-amqp.md"} {
		t.Run(family, func(t *testing.T) { sourcesOf(t, family, document) })
	}
}

func sourcesOf(t *testing.T, family, document string) {
	text, err := os.ReadFile("../../docs/" + document)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		setURLs(t, string(block[1]))
		c, err := Parse("redrive.yaml", block[1])
		if err != nil {
			t.Errorf("%v in\n%s", err, block[1])
			continue
		}
		for _, s := range c.Sources() {
			shown[s.Preset.Name] = true
		}
	}
	for name, p := range preset.All() {
		if p.Family == family && !shown[name] {
			t.Errorf("%s does not show how to attach %s", document, name)
		}
	}
}

// setURLs gives the variables that a file names URLs that fit: those of queues in Redis, and
// those of sources by their presets.
func setURLs(t *testing.T, file string) {
	var of *preset.Preset
	for _, field := range regexp.MustCompile(`\b(preset|url_env|work_url_env): ([\w-]+)`).FindAllStringSubmatch(file, -1) {
		switch field[1] {
		case "preset":
			of = preset.All()[field[2]]
			continue
		case "work_url_env":
			t.Setenv(field[2], "redis://redis.internal")
			continue
		}
		for _, address := range []string{"postgres://db.internal/x", "sqlite:///srv/x", "redis://redis.internal", "amqp://rabbit.internal"} {
			if of.CheckURL(address) == nil {
				t.Setenv(field[2], address)
			}
		}
	}
}

// Every field of a source counts: a change of one that the fingerprint did not know would not
// be seen by a reload.
func TestSource_FingerprintChangesWithEachField(t *testing.T) {
	const least = "sources: {a: {preset: table, url: 'sqlite:///a', table: dead, key: id, payload: body"
	seen := map[string]string{}
	for _, more := range []string{
		"}}", ", allow: [replay], replay: ['DELETE FROM {table} WHERE id = :key AND id = :witness']}}",
		", replay: ['DELETE FROM {table} WHERE id = :key AND id = :witness']}}",
		", discard: ['DELETE FROM {table} WHERE id = :key AND id = :witness']}}",
		", every: 7s}}", ", where: 'a = 1'}}", ", zone: Europe/Berlin}}", ", type: kind}}", ", moved_from: /srv/b}}",
	} {
		s := parse(t, least+more).Sources()[0]
		if other, twice := seen[s.Fingerprint()]; twice {
			t.Errorf("%q and %q look the same", other, more)
		}
		if again := parse(t, least+more).Sources()[0]; again.Fingerprint() != s.Fingerprint() {
			t.Errorf("%q looks different when it is read again", more)
		}
		seen[s.Fingerprint()] = more
	}

	s := parse(t, least+"}}").Sources()[0]
	for what, change := range map[string]func(*Source){
		"name":    func(s *Source) { s.Name = "b" },
		"preset":  func(s *Source) { s.Preset = preset.All()["laravel"] },
		"profile": func(s *Source) { s.Profile.Title = "Another" },
		"url":     func(s *Source) { s.URL = httpclient.NewSecret("sqlite:///b") },
		"work":    func(s *Source) { s.Work = httpclient.NewSecret("redis://b") },
		"values":  func(s *Source) { s.Settings.Values = map[string]string{"quorum": "allow"} },
		"queues":  func(s *Source) { s.Settings.Queues = []string{"dead"} },
	} {
		changed := s
		change(&changed)
		if changed.Fingerprint() == s.Fingerprint() {
			t.Errorf("another %s looks the same", what)
		}
	}
}
