package preset

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"redrive/internal/source"
)

// members are the names of what a record can say, as redrive.yaml has them: members of an
// object of JSON, or fields of a hash.
var members = []string{
	"thread", "queue", "type", "payload", "error_type", "error", "trace", "attempts", "limit", "failed_at", "created_at",
}

// plain is what a field of a hash may be called, so that it can stand in a script.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)

// ownKeys takes over what redrive.yaml says of dead letters that are in keys of Redis.
func (p *Preset) ownKeys(names map[string]string) error {
	dead, kind := names["list"], "list"
	if dead == "" {
		dead, kind = names["sorted_set"], "zset"
	}

	if err := checkKeys(names, dead); err != nil {
		return err
	}

	r := &Redis{Dead: dead, Type: kind, Newest: names["newest"], Target: names["default_queue"], Keys: map[string]string{"dead": dead}}
	if kind == "list" {
		// The scripts look for a record in a list with LPOS; see guard.
		r.Least = "6.0.6"
	}

	// Each queue has a key of its own, and the queues are found by their keys; or the one key
	// must be of the right type.
	if strings.Contains(dead, "{queue}") {
		r.Queues = Queues{Scan: dead, Type: kind}
	} else {
		r.Expect = map[string]string{dead: kind}
	}

	// The members of the key are ids, and the records are hashes; or the members are the
	// records.
	if names["hash"] != "" {
		r.Keys["record"] = names["hash"]
		r.Hash = &Hash{Key: names["hash"], VersionToken: names["witness"]}
		for _, m := range members {
			r.Hash.Fields = append(r.Hash.Fields, names[m])
		}
	}

	// A replay of a hash pushes its id alone, so only other records can get another payload.
	p.Redis, p.Edits = r, r.Hash == nil
	p.Replay, p.Discard = nil, []string{p.removal(names)}
	if names["work"] != "" {
		r.Keys["work"] = names["work"]
		script := []string{p.push(names)}
		p.Replay = map[source.Mode][]string{source.Once: script, source.Fresh: script}
	}

	return nil
}

// checkKeys refuses keys that do not say where a record is, or where it goes.
func checkKeys(names map[string]string, dead string) error {
	hash, work := names["hash"], names["work"]
	oneOf := func(field, a, b string) error {
		if names[field] != a && names[field] != b {
			return fmt.Errorf("%s is %q; use %s or %s", field, names[field], a, b)
		}
		return nil
	}

	switch {
	case (names["list"] == "") == (names["sorted_set"] == ""):
		return errors.New("needs exactly one of list and sorted_set: the key in which the dead letters lie")
	case strings.Contains(dead+work, "{id}"):
		return errors.New("has {id} in a key; only the key under hash can have it")
	case hash != "" && !strings.Contains(hash, "{id}"):
		return errors.New("needs {id} in the key under hash, as in job:{id}")
	case hash != "" && (names["witness"] == "" || names["payload"] == ""):
		return errors.New("needs the fields witness and payload, because its records are hashes: " +
			"the witness changes when a job dies again, for example its time of death")
	case hash == "" && names["witness"] != "":
		return errors.New("has a witness, which only hashes have: a record in a list or a sorted set is known by its bytes")
	case hash != "" && strings.Contains(work+hash, "{queue}") && !strings.Contains(dead, "{queue}"):
		return errors.New("has {queue} in a key, and nothing tells the queue: put it into the key of the dead letters, too")
	}

	// Some of these names stand in the scripts, between quotation marks.
	for _, m := range append(slices.Clone(members), "witness") {
		if hash != "" && names[m] != "" && !plain.MatchString(names[m]) {
			return fmt.Errorf("the field %q under %s has characters other than letters, digits, and _ . : -", names[m], m)
		}
	}

	if err := oneOf("newest", "first", "last"); err != nil {
		return err
	}

	return oneOf("push", "left", "right")
}

// guard is the beginning of a script, which finds the record only as it was seen.
func (p *Preset) guard(names map[string]string) (text, remove string) {
	text, remove = "if not redis.call('LPOS', dead, id) then return 0 end\n", "redis.call('LREM', dead, 1, id)\n"
	if p.Redis.Type == "zset" {
		text, remove = "if not redis.call('ZSCORE', dead, id) then return 0 end\n", "redis.call('ZREM', dead, id)\n"
	}

	if p.Redis.Hash != nil {
		text += "local seen = redis.call('HGET', record, '" + names["witness"] + "')\n"
	}

	return text, remove
}

// removal is the script of a discard.
func (p *Preset) removal(names map[string]string) string {
	text, remove := p.guard(names)
	p.Redis.Writes.Discard = []string{p.removing()}
	if p.Redis.Hash != nil {
		p.Redis.Writes.Discard = append(p.Redis.Writes.Discard, "DEL record")
		text += "if (seen or '') ~= witness then return -1 end\n"
		remove += "redis.call('DEL', record)\n"
	}

	return text + remove + "return 1"
}

// removing is the command that takes a member out of the key dead.
func (p *Preset) removing() string {
	if p.Redis.Type == "zset" {
		return "ZREM dead"
	}
	return "LREM dead"
}

// push is the script of a replay. The codec makes the bytes of a record that is not a
// hash; of one that is, the same fields are changed.
func (p *Preset) push(names map[string]string) string {
	text, remove := p.guard(names)
	command, what := "RPUSH", "clean"
	if names["push"] == "left" {
		command = "LPUSH"
	}

	p.Redis.Writes.Replay = []string{command + " work", p.removing()}
	change := ""
	if p.Redis.Hash != nil {
		what = "id"

		// What the script returns is Missing or Changed.
		text += "if not seen then return -2 end\nif seen ~= witness then return -1 end\n"

		for _, m := range Traces {
			if names[m] != "" {
				change += "redis.call('HDEL', record, '" + names[m] + "')\n"
			}
		}

		if names["attempts"] != "" {
			change += "redis.call('HSET', record, '" + names["attempts"] + "', '0')\n"
		}

		p.Redis.Writes.Replay = append(p.Redis.Writes.Replay, "HDEL record", "HSET record")
	}

	return text + "redis.call('" + command + "', work, " + what + ")\n" + change + remove + "return 1"
}

// Traces are what a replay takes out of a record of an own system: what its failure left.
var Traces = []string{"error_type", "error", "trace", "failed_at"}
