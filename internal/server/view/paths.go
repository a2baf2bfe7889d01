package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
)

// maxPaths bounds how many places of a payload are named.
const maxPaths = 20

// changedPaths names the places at which two payloads differ, as "$.card.last4":
// what the audit log may know of a change. Texts differ as a whole.
func changedPaths(was, is []byte) []string {
	before, ok1 := decoded(was)
	after, ok2 := decoded(is)
	if !ok1 || !ok2 {
		return []string{"$"}
	}
	paths := differing("$", before, after)
	if len(paths) == 0 { // a member that is written twice, or the layout
		return []string{"$"}
	}
	if more := len(paths) - maxPaths; more > 0 {
		paths = append(paths[:maxPaths], fmt.Sprintf("and %d more", more))
	}
	return paths
}

func decoded(data []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

func differing(path string, a, b any) []string {
	switch was := a.(type) {
	case map[string]any:
		if is, ok := b.(map[string]any); ok {
			return differingMembers(path, was, is)
		}
	case []any:
		if is, ok := b.([]any); ok {
			return differingItems(path, was, is)
		}
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{path}
}

func differingMembers(path string, was, is map[string]any) (all []string) {
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := path + member(name)
		a, before := was[name]
		b, after := is[name]
		switch {
		case before && after:
			all = append(all, differing(at, a, b)...)
		default:
			all = append(all, at)
		}
	}
	return all
}

func differingItems(path string, was, is []any) (all []string) {
	for i := range max(len(was), len(is)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		if i < len(was) && i < len(is) {
			all = append(all, differing(at, was[i], is[i])...)
		} else {
			all = append(all, at)
		}
	}
	return all
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// member is a step of a path into an object.
func member(name string) string {
	if plainName.MatchString(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}
