package redissource

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// named puts the names that redrive.yaml gives into all keys of a preset.
func named(r preset.Redis, names map[string]string) preset.Redis {
	var pairs []string
	for name, value := range names {
		pairs = append(pairs, "{"+name+"}", value)
	}

	replace := strings.NewReplacer(pairs...).Replace
	r.Dead, r.Queues.Set, r.Queues.Scan = replace(r.Dead), replace(r.Queues.Set), replace(r.Queues.Scan)
	r.Queues.Member, r.Target, r.Succeeded = replace(r.Queues.Member), replace(r.Target), replace(r.Succeeded)

	r.Keys = replaceIn(r.Keys, func(name, key string) (string, string) { return name, replace(key) })
	r.Expect = replaceIn(r.Expect, func(key, kind string) (string, string) { return replace(key), kind })
	if r.Hash != nil {
		h := *r.Hash
		h.Key, h.Stream = replace(h.Key), replace(h.Stream)
		r.Hash = &h
	}

	return r
}

func replaceIn(all map[string]string, replace func(k, v string) (string, string)) map[string]string {
	replaced := map[string]string{}
	for k, v := range all {
		k, v = replace(k, v)
		replaced[k] = v
	}

	return replaced
}

// fill makes a key of one queue and one id.
func fill(key, queue, id string) string {
	return strings.NewReplacer("{queue}", queue, "{id}", id).Replace(key)
}

// queueIn is the queue that a key of the form of another one belongs to.
func queueIn(form, key string) (queue string, ok bool) {
	head, tail, _ := strings.Cut(form, "{queue}")

	rest, ok := strings.CutPrefix(key, head)
	if !ok {
		return "", false
	}

	return strings.CutSuffix(rest, tail)
}

// glob is the pattern of all keys of a form.
func glob(form string) string {
	head, tail, _ := strings.Cut(form, "{queue}")
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace
	return escape(head) + "*" + escape(tail)
}

// meant is the name that is shown as a text.
func meant(text string) string {
	if name, err := strconv.Unquote(text); err == nil && strings.HasPrefix(text, `"`) {
		return name
	}
	return text
}

// keyOf names a record of a queue, by its id or its digest.
func keyOf(queue, id string) string {
	if queue == "" {
		return source.ShownName(id)
	}
	return source.ShownName(queue) + "/" + source.ShownName(id)
}

// idIn is the id in the name of a record.
func idIn(key, queue string) string {
	return meant(strings.TrimPrefix(key, source.ShownName(queue)+"/"))
}

// together reports whether a Cluster keeps keys in one slot.
func together(keys []string) bool {
	slots := map[uint16]bool{}
	for _, key := range keys {
		slots[slot(key)] = true
	}

	return len(slots) <= 1
}

// slot is where a Cluster keeps a key: CRC-16 of it, or of what stands in its first
// braces.
func slot(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}

	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}

	return crc % 16384
}

// sorted are the values of a map in the order of their keys.
func sorted(all map[string]string) (values []string) {
	for _, k := range slices.Sorted(maps.Keys(all)) {
		values = append(values, all[k])
	}
	return values
}
