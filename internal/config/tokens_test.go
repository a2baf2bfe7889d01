package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
)

// lines are so many lines, each with its number.
func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// stairs are names that are indented one deeper each.
func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// hostile are files that fit into the size of a file, but would cost the parser all memory
// or many minutes, each with the error that says why they are refused.
func hostile() []badFile {
	const deep = "is nested too deep: more than 32 mappings and lists inside one another"
	const many = "is too large: a mapping or list with more than 5000 entries"
	const tooMany = "is too large: more than 50000 names, values and signs up to here"
	repeat := strings.Repeat
	return []badFile{
		{"open lists", "workers: 1\n" + repeat("[", 100_000), "redrive.yaml:2: " + deep},
		{"closed lists", repeat("[", 60_000) + repeat("]", 60_000), "redrive.yaml:1: " + deep},
		{"open mappings", repeat("{a: ", 25_000), "redrive.yaml:1: " + deep},
		{"mappings on lines", repeat("{\n\"a\" :\n", 20_000), "redrive.yaml:65: " + deep},
		{"lists of mappings", repeat("[{a: ", 20_000), "redrive.yaml:1: " + deep},
		{"brackets in indentation", stairs(20) + repeat(" ", 20) + repeat("[", 1000), "redrive.yaml:21: " + deep},
		{"dashes on one line", repeat("- ", 60_000), "redrive.yaml:1: " + deep},
		{"names after dashes", repeat("- a: ", 20_000), "redrive.yaml:1: " + deep},
		{"indentation", stairs(1000), "redrive.yaml:33: " + deep},
		{"quoted names in indentation", strings.ReplaceAll(stairs(1000), "a", `"a"`), "redrive.yaml:33: " + deep},
		{"tabs after dashes", repeat("-\t", 60_000), "redrive.yaml:"},
		{"question marks", repeat("? ", 60_000), `redrive.yaml:1: a "?" before a name is not supported`},
		{"a list as a name", "? [" + repeat("a,", 1000) + "]\n: 1", `redrive.yaml:1: a "?" before a name is not supported`},
		{"entries without a value", repeat("-\n", 20_000), "redrive.yaml:5001: " + many},
		{"entries", lines("k%d: 1\n", 6_000), "redrive.yaml:5001: " + many},
		{"entries in brackets", "a: {" + lines("k%d: 1, ", 6_000) + "}", "redrive.yaml:1: " + many},
		{"lists in a list", repeat("- a: \n  ", 20_000), "redrive.yaml:5001: " + many},
		{"anchors", "a:\n" + repeat("- &a x\n", 20_000), "redrive.yaml:5001: " + many},
		{"aliases", "a: &a x\nb: [" + repeat("*a,", 20_000) + "]", "redrive.yaml:2: " + many},
		{"tags", "a: " + repeat("!!x ", 20_000), "redrive.yaml:1: anchors, aliases and tags are not supported"},
		{"documents", repeat("---\na\n", 10_000), "redrive.yaml:33: a second document"},
		{"a long name", repeat("k", 60_000) + ": [" + repeat("1,", 4000) + "]", "redrive.yaml:1: a name of 60000 bytes; a name can have at most 256"},
		{"a long name in quotes", `{"` + repeat(`k\n`, 20_000) + `": 1}`, "redrive.yaml:1: a name of 40000 bytes"},
		{"many small lists", lines("k%d: [1,1,1,1,1,1]\n", 5000), "redrive.yaml:3334: " + tooMany},
		{"comments", repeat("#\n", 60_000), "redrive.yaml:50001: " + tooMany},
	}
}

func TestParse_RefusesAFileThatWouldCostTheParserTooMuch(t *testing.T) {
	for _, test := range hostile() {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("redrive.yaml", []byte(test.text))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || errors.As(err, new(Errors)) {
				t.Errorf("error %.200v\nwant one, %s…", err, test.want)
			}
		})
	}
}

// A bomb of aliases is small until they are followed, which no reader of values does.
func TestParse_FollowsNoAlias(t *testing.T) {
	bomb := "a0: &a0 [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	if _, err := Parse("redrive.yaml", []byte(bomb+"types: *a30\n")); err == nil {
		t.Error("it was read")
	}
}

func TestParse_TakesALargeFile(t *testing.T) {
	large := "# " + strings.Repeat("comment ", 50_000) + "\nworkers: 3\nqueues:\n" +
		lines("  queue-%d: {workers: 2, ttr: 30s}\n", 1000) +
		"types:\n" + lines("  type.%d:\n    policy:\n      strategy: exponential\n      max_attempts: 4\n", 1000)
	c, err := Parse("redrive.yaml", []byte(large))
	if err != nil || c.Workers("queue-999") != 2 {
		t.Errorf("%.300v", err)
	}
}

// depth is how many mappings and lists are nested inside one another.
func depth(n ast.Node) (deepest int) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		for _, v := range n.Values {
			deepest = max(deepest, depth(v))
		}
		return deepest + 1
	case ast.MapNode:
		for entry := n.MapRange(); entry.Next(); {
			deepest = max(deepest, depth(entry.Value()))
		}
		return deepest + 1
	case *ast.AnchorNode:
		return depth(n.Value)
	case *ast.TagNode:
		return depth(n.Value)
	}
	return 0
}

// FuzzParse_StaysShallow looks for files that get past the bounds of tokens, or break a reader. A list
// may be indented as deep as the name before it, so that one level stands for two.
func FuzzParse_StaysShallow(f *testing.F) {
	for _, test := range hostile() {
		f.Add(test.text[:min(len(test.text), 400)])
	}
	f.Add("queues:\n  a: {policy: {max_attempts: 3}}\nhandlers:\n- b:\n  - c\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Parse("f", []byte(text)); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		file := newFile("f")
		if root, err := file.parse([]byte(text)); err == nil && root.node != nil && depth(root.node) > 2*maxDepth {
			t.Errorf("%d deep", depth(root.node))
		}
	})
}
