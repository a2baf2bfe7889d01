package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/retry"
)

// file remembers where each field stands, for errors that come later.
type file struct {
	name  string
	lines map[string]int // by path
}

// newFile returns a file of which no line is known yet.
func newFile(name string) *file { return &file{name, map[string]int{}} }

// wrong is an error about a field; when the field itself is not written in the
// file, about the closest one around it that is.
func (f *file) wrong(path, problem string) error {
	if path == "" { // the whole file
		return &Error{File: f.name, Line: f.lines[""], Problem: problem}
	}

	for at := path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		if line, ok := f.lines[at]; ok {
			return &Error{File: f.name, Line: line, Field: path, Problem: problem}
		}
	}

	return &Error{File: f.name, Field: path, Problem: problem}
}

// parse returns the one document of a file; without a node when it is empty.
func (f *file) parse(data []byte) (value, error) {
	root := value{file: f}
	if len(data) > maxFile {
		return root, &Error{File: f.name, Problem: fmt.Sprintf("is larger than %d bytes", maxFile)}
	}

	tokens, err := f.tokens(string(bytes.TrimPrefix(data, []byte("\ufeff")))) // some editors mark UTF-8
	if err != nil {
		return root, err
	}

	doc, err := parser.Parse(tokens, 0)
	if err != nil {
		return root, f.syntax(err)
	}

	// Comments before or behind the settings count as documents of their own.
	var bodies []ast.Node
	for _, d := range doc.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}

	if len(bodies) > 1 {
		return root, &Error{File: f.name, Line: lineOf(bodies[1]), Problem: "a second document; write everything into one"}
	}

	if len(bodies) == 1 {
		root.node, f.lines[""] = bodies[0], lineOf(bodies[0])
	}

	return root, nil
}

// syntax is an error of the parser, without the excerpt of the file that it
// draws: there may be secrets in it.
func (f *file) syntax(err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		return &Error{File: f.name, Line: at.GetToken().Position.Line, Problem: at.GetMessage()}
	}

	return &Error{File: f.name, Problem: err.Error()}
}

// value is a place in a file.
type value struct {
	node ast.Node
	path string
	file *file
}

// wrong is an error about this value.
func (v value) wrong(format string, args ...any) error {
	return v.file.wrong(v.path, fmt.Sprintf(format, args...))
}

// noSecret is an error about a secret that is not on this machine.
type noSecret struct{ error }

func (n noSecret) Unwrap() error { return n.error }

// missing is an error about a secret that the value names.
func (v value) missing(format string, args ...any) error { return noSecret{v.wrong(format, args...)} }

// unset is an error about a variable of the environment that the value names.
func (v value) unset(name string) error {
	err := v.missing("the environment variable %q is missing or empty", clip.Text(name, 64))
	if wrong, ok := errors.AsType[*Error](err); ok {
		wrong.Unset = true
	}

	return err
}

// fields reads a mapping whose keys are known.
func (v value) fields(known map[string]func(value) error) error {
	return v.entries(func(name string, v value) error {
		read, ok := known[name]
		if !ok {
			return v.unknown(name, slices.Sorted(maps.Keys(known)))
		}

		return read(v)
	})
}

// unknown is the error of a field that does not exist here.
func (v value) unknown(name string, known []string) error {
	if _, ofPolicy := fields(retry.Patch{})[name]; ofPolicy && slices.Contains(known, "policy") {
		return v.wrong("no such field; it is a field of the policy, so write it below policy:")
	}
	return v.wrong("no such field%s; the fields are %s", invalid.DidYouMean(name, known), strings.Join(known, ", "))
}

// entries reads a mapping with any keys, in the order of the file. An empty
// value is an empty mapping. One entry that is wrong does not keep the others from
// being read: people see all errors of a file at once.
func (v value) entries(read func(name string, v value) error) error {
	if v.node.Type() == ast.NullType {
		return nil
	}

	mapping, ok := v.node.(ast.MapNode)
	if !ok {
		return v.want("a mapping (name: value)")
	}

	var all []error

	seen := map[string]bool{}
	entry := mapping.MapRange()
	for entry.Next() {
		name, err := v.key(entry.Key())
		if err != nil {
			all = append(all, err)
			continue
		}

		// The line is noted before the value is read, because an error needs it.
		child := value{entry.Value(), join(v.path, name), v.file}
		v.file.lines[child.path] = lineOf(entry.Key())
		if seen[name] {
			err = child.wrong("is written twice")
		} else {
			err = read(name, child)
		}

		seen[name] = true

		all = append(all, err)
	}

	return errors.Join(all...)
}

// key is the name of an entry. A number, or a word such as true, is taken for the name
// that it looks like.
func (v value) key(key ast.MapKeyNode) (string, error) {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, nil
	}

	return "", &Error{
		File:    v.file.name,
		Line:    lineOf(key),
		Field:   v.path,
		Problem: "anchors, merge keys and keys that are no plain names are not supported; write it out",
	}
}

// text reads a string. Numbers and words such as yes are refused: YAML would change
// how they are written.
func (v value) text() (string, error) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	}

	return "", v.want("a string; put it in quotes")
}

// hidden is text for a value that no error may show.
func (v value) hidden() (string, error) {
	switch v.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return v.text()
	}

	return "", v.wrong("must be a string; put it in quotes")
}

// mapping is an error that does not show the value unless it is a mapping.
func (v value) mapping() error {
	if _, ok := v.node.(ast.MapNode); !ok {
		return v.wrong("must be a mapping (name: value)")
	}
	return nil
}

// integer reads a whole number that fits into an int.
func (v value) integer() (int, error) {
	n, ok := v.node.(*ast.IntegerNode)
	if !ok {
		return 0, v.want("a whole number")
	}

	switch i := n.Value.(type) {
	case int64:
		return int(i), nil
	case uint64:
		if i <= 1<<62 {
			return int(i), nil
		}
	}

	return 0, v.want("a whole number of reasonable size")
}

// boolean reads true or false.
func (v value) boolean() (bool, error) {
	if n, ok := v.node.(*ast.BoolNode); ok {
		return n.Value, nil
	}
	return false, v.want("true or false")
}

// listOf makes a reader of a list out of a reader of its entries.
func listOf[T any](read func(value) (T, error)) func(value) ([]T, error) {
	return func(v value) (all []T, err error) {
		items, err := v.items()
		if err != nil {
			return nil, err
		}

		var wrong []error
		for _, item := range items {
			entry, err := read(item)
			all, wrong = append(all, entry), append(wrong, err)
		}

		return all, errors.Join(wrong...)
	}
}

// textList reads a list of strings.
func textList(v value) ([]string, error) { return listOf(value.text)(v) }

// items are the entries of a list, each with the line on which it stands.
func (v value) items() ([]value, error) {
	list, ok := v.node.(*ast.SequenceNode)
	if !ok {
		return nil, v.want("a list such as [a, b]")
	}

	items := make([]value, len(list.Values))
	for i, n := range list.Values {
		items[i] = value{n, fmt.Sprintf("%s[%d]", v.path, i), v.file}
		v.file.lines[items[i].path] = lineOf(n)
	}

	return items, nil
}

// json writes the value as JSON.
func (v value) json() ([]byte, error) {
	switch n := v.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		s, err := v.text()
		return quote(s), err
	case *ast.IntegerNode:
		return fmt.Append(nil, n.Value), nil
	case *ast.FloatNode:
		return json.Marshal(n.Value)
	case *ast.BoolNode:
		return fmt.Append(nil, n.Value), nil
	case *ast.NullNode:
		return []byte("null"), nil
	case *ast.SequenceNode:
		return v.jsonList()
	case ast.MapNode:
		return v.jsonObject()
	}

	return nil, v.want("a plain value")
}

// jsonObject keeps the order of the file.
func (v value) jsonObject() ([]byte, error) {
	var members [][]byte
	err := v.entries(func(name string, v value) error {
		data, err := v.json()
		members = append(members, slices.Concat(quote(name), []byte(":"), data))
		return err
	})

	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), err
}

func (v value) jsonList() ([]byte, error) {
	all, err := listOf(value.json)(v)
	return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]")), err
}

// want says which kind of value belongs here, and what stands here instead.
func (v value) want(kind string) error {
	switch v.node.Type() {
	case ast.AnchorType, ast.AliasType, ast.TagType, ast.MergeKeyType:
		return v.wrong("anchors, aliases and tags are not supported; write the values out")
	case ast.NullType:
		return v.wrong("is empty; must be %s", kind)
	}

	return v.wrong("must be %s, not %s", kind, clip.Text(v.node.String(), 40))
}

// quote writes a string as JSON.
func quote(s string) []byte {
	data, err := json.Marshal(s)
	if err != nil { // unreachable: every string can be written
		panic(err)
	}

	return data
}

// join is the path of a field below a place; the root has no path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// lineOf is the line on which a node begins, or zero.
func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
