package codec_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
	"redrive/internal/source/codec"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 123456789, time.UTC)

// commands are those of a fixture, with their arguments as bytes.
func commands(f *testing.F, file string) (all [][][]byte) {
	f.Helper()
	text, err := os.ReadFile(filepath.Join("../testdata", file))
	if err != nil {
		f.Fatal(err)
	}
	var read [][]any
	if err := json.Unmarshal(text, &read); err != nil {
		f.Fatal(err)
	}
	for _, command := range read {
		var args [][]byte
		for _, arg := range command {
			switch arg := arg.(type) {
			case string:
				args = append(args, []byte(arg))
			case map[string]any:
				b, err := base64.StdEncoding.DecodeString(arg["b64"].(string))
				if err != nil {
					f.Fatal(err)
				}
				args = append(args, b)
			}
		}
		all = append(all, args)
	}
	return all
}

// lists are the elements of all lists of a dump.
func lists(f *testing.F, file string) (all [][]byte) {
	f.Helper()
	text, err := os.ReadFile(filepath.Join("../testdata", file))
	if err != nil {
		f.Fatal(err)
	}
	var keys map[string]struct{ LRange []string }
	if err := json.Unmarshal(text, &keys); err != nil {
		f.Fatal(err)
	}
	for _, key := range keys {
		for _, element := range key.LRange {
			all = append(all, []byte(element))
		}
	}
	return all
}

// read reads a record and fails when something in it cannot be kept.
func read(t *testing.T, name string, raw []byte) source.Record {
	t.Helper()
	c, ok := codec.Get(name)
	if !ok {
		t.Fatal("no such codec")
	}
	r := source.Record{Queue: "orders", Raw: bytes.Clone(raw)}
	c.Read(&r)
	if !bytes.Equal(r.Raw, raw) {
		t.Fatalf("reading changed the record: %q", r.Raw)
	}
	sound(t, r)
	return r
}

func sound(t *testing.T, r source.Record) {
	t.Helper()
	if r.Attempts < 0 || r.Limit < 0 || r.Attempts > 1<<16 || r.Limit > 1<<16 {
		t.Fatalf("%d of %d attempts", r.Attempts, r.Limit)
	}
	if r.Meta != nil && (len(r.Meta) > job.MaxMeta || !json.Valid(r.Meta) || rawjson.Kind(r.Meta) != '{') {
		t.Fatalf("meta %q", r.Meta)
	}
	for _, at := range []time.Time{r.FailedAt, r.CreatedAt} {
		if !at.IsZero() && (at.Year() < 1970 || at.Year() > 9999) {
			t.Fatalf("at %s", at)
		}
	}
}

// clean makes the bytes for the next run, or nil.
func clean(name string, raw []byte, mode source.Mode) []byte {
	c, _ := codec.Get(name)
	b, err := c.Clean(bytes.Clone(raw), codec.Run{Mode: mode, Now: now})
	if err != nil {
		return nil
	}
	return b
}

func memberOf(object []byte, name string) []byte {
	for m := range rawjson.Members(object) {
		if m.Name == name {
			return object[m.Value:m.To]
		}
	}
	return nil
}

func FuzzSidekiq(f *testing.F) {
	for _, command := range commands(f, "sidekiq/redis-commands.json") {
		for _, arg := range command {
			f.Add(arg)
		}
	}
	f.Add([]byte(`{"retry_count":1,"queue":"a"}`))
	f.Add([]byte(` { "failed_at":1 , "queue" : "a", "error_class":"x" } `))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := read(t, "sidekiq", raw)
		for _, mode := range []source.Mode{source.Once, source.Fresh} {
			b := clean("sidekiq", raw, mode)
			if b == nil {
				continue
			}
			if !json.Valid(b) || !bytes.Equal(memberOf(b, "args"), memberOf(raw, "args")) || memberOf(b, "enqueued_at") == nil {
				t.Fatalf("%s makes %q", mode, b)
			}
			if mode == source.Fresh && (memberOf(b, "retry_count") != nil || memberOf(b, "error_class") != nil) {
				t.Fatalf("fresh makes %q", b)
			}
			if again := read(t, "sidekiq", b); again.Queue != r.Queue || again.Lineage != r.Lineage || again.Type != r.Type {
				t.Fatalf("%s makes another job: %q", mode, b)
			}
		}
	})
}

func FuzzAsynq(f *testing.F) {
	for _, command := range commands(f, "asynq/redis-commands.json") {
		for _, arg := range command {
			f.Add(arg)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := read(t, "asynq", raw)
		once, fresh := clean("asynq", raw, source.Once), clean("asynq", raw, source.Fresh)
		if (once == nil) != (fresh == nil) {
			t.Fatal("only one mode can be made")
		}
		if len(once) == 0 || len(fresh) == 0 {
			return
		}
		if len(r.Warnings) == 0 && !bytes.Equal(once, raw) {
			t.Fatalf("once makes %q", once)
		}
		if again := read(t, "asynq", fresh); again.Attempts != 1 || again.Type != r.Type || !bytes.Equal(again.Payload, r.Payload) {
			t.Fatalf("fresh makes %q", fresh)
		}
		c, _ := codec.Get("asynq")
		edited, err := c.Edited(bytes.Clone(raw), []byte("[7]"))
		if again := read(t, "asynq", edited); err != nil || again.Type != r.Type || string(again.Payload) != "[7]" || !bytes.Equal(again.Meta, r.Meta) {
			t.Fatalf("edited, it is %q, %v", edited, err)
		}
	})
}

func FuzzFrame(f *testing.F) {
	for _, file := range []string{"babelqueue-go/redis-dump.json", "initphp-queue/redis-dump.json"} {
		for _, element := range lists(f, file) {
			f.Add(element)
		}
	}
	f.Add([]byte(`{"__bq_frame":1,"headers":{"a":"b"},"body":"{\"job\":\"a\",\"data\":{},\"attempts\":1}","dead_letter":{"reason":"missing_urn"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		read(t, "frame", raw)
		read(t, "unframe", raw)
		framed, plain := clean("frame", raw, source.Once), clean("unframe", raw, source.Once)
		if (framed == nil) != (plain == nil) {
			t.Fatal("only one of two can be made")
		}
		if plain != nil && (!json.Valid(plain) || !json.Valid(framed) || memberOf(plain, "dead_letter") != nil) {
			t.Fatalf("%q and %q", framed, plain)
		}
	})
}

func FuzzBullMQ(f *testing.F) {
	for _, command := range commands(f, "bullmq/redis-commands-v6.json") {
		if fields := fieldsOf(command); fields["name"] != "" {
			f.Add(fields["stacktrace"], fields["opts"], fields["atm"], fields["finishedOn"], fields["parentKey"])
		}
	}
	readBull, _ := codec.Hash("bullmq")
	f.Fuzz(func(t *testing.T, stacks, opts, atm, at, parent string) {
		r := source.Record{Queue: "orders"}
		readBull(&r, codec.Fields{"name": "n", "stacktrace": stacks, "opts": opts, "atm": atm, "finishedOn": at, "parentKey": parent})
		sound(t, r)
	})
}

func FuzzRQ(f *testing.F) {
	for _, command := range commands(f, "rq/redis-commands.json") {
		if fields := fieldsOf(command); fields["description"] != "" {
			f.Add([]byte(fields["data"]), "", []byte(fields["exc_info"]), fields["description"], fields["ended_at"])
		}
		if string(command[0]) == "XADD" {
			f.Add([]byte{}, string(command[len(command)-1]), []byte{}, "tasks.charge(1)", "")
		}
	}
	f.Add([]byte{}, "", []byte{}, "tasks.charge(1)", "0000-01-01T00:00:00.0Z")
	readRQ, _ := codec.Hash("rq")
	f.Fuzz(func(t *testing.T, data []byte, packed string, info []byte, description, at string) {
		r := source.Record{Queue: "orders"}
		readRQ(&r, codec.Fields{"data": string(data), "exc_string": packed, "exc_info": string(info), "description": description, "ended_at": at})
		sound(t, r)
	})
}

func fieldsOf(command [][]byte) codec.Fields {
	fields := codec.Fields{}
	for i := 2; i+1 < len(command); i += 2 {
		fields[string(command[i])] = string(command[i+1])
	}
	return fields
}

func FuzzDaycryRedis(f *testing.F) {
	for _, command := range commands(f, "daycry-jobs/redis-commands.json") {
		for _, arg := range command {
			f.Add(arg)
		}
	}
	f.Add([]byte(`{"data":{"payload":{"_dlq_metadata":{"original_queue":"a"}}}}`))
	c, _ := codec.Get("daycry-redis")
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := read(t, "daycry-redis", raw)
		b, err := c.Clean(bytes.Clone(raw), codec.Run{Mode: source.Once, Now: now, Target: "mail"})
		if err != nil {
			return
		}
		if again := read(t, "daycry-redis", b); again.Type != r.Type || again.Attempts > 1 || !json.Valid(b) {
			t.Fatalf("it makes another job: %q", b)
		}
	})
}

func FuzzYiiRedis(f *testing.F) {
	for _, command := range commands(f, "yii2-queue/redis-commands.json") {
		for _, arg := range command {
			f.Add(string(arg), "RuntimeException", "1", "1795206827.25")
		}
	}
	readKept, _ := codec.Hash("yii2-redis")
	f.Fuzz(func(t *testing.T, message, class, attempt, at string) {
		r := source.Record{Queue: "queue"}
		readKept(&r, codec.Fields{"message": message, "exception": class, "attempt": attempt, "failed_at": at})
		sound(t, r)
	})
}

func FuzzOwn(f *testing.F) {
	f.Add([]byte(`{"id":"7","body":{"n":1.0},"tries":3,"why":"refused","died":1795206827}`), "2026-11-20 20:33:47")
	f.Add([]byte("no JSON"), "1795206827000")
	names := map[string]string{"thread": "id", "payload": "body", "attempts": "tries", "error": "why", "failed_at": "died", "limit": "of"}
	c, hash := codec.Own(names, []string{"error", "failed_at", "trace"})
	f.Fuzz(func(t *testing.T, raw []byte, at string) {
		r := source.Record{Queue: "orders", Raw: bytes.Clone(raw)}
		c.Read(&r)
		sound(t, r)
		b, err := c.Clean(bytes.Clone(raw), codec.Run{Mode: source.Once, Now: now})
		if err != nil || json.Valid(raw) && !json.Valid(b) || len(r.Warnings) > 0 && !bytes.Equal(b, raw) {
			t.Fatalf("%q, %v", b, err)
		}
		again := source.Record{Queue: "orders", Raw: b}
		c.Read(&again)
		if again.Lineage != r.Lineage || again.Attempts != 0 || again.Error.Message != "" {
			t.Fatalf("it makes another job: %q", b)
		}
		h := source.Record{Queue: "orders"}
		hash(&h, codec.Fields{"id": string(raw), "body": at, "tries": at, "died": at, "of": string(raw)})
		sound(t, h)
	})
}
