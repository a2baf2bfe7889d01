package static

import (
	"regexp"
	"strings"
)

var (
	imported = regexp.MustCompile(`(?m)^import (?:\* as \w+|(\{.+\})) from "\./(\w+)\.js";$`)
	exported = regexp.MustCompile(`(?m)^export ((?:const|function|async function) (\w+))`)
)

// bundle returns one classic script for all pages. The theme is first and runs at
// once, so that no page is drawn in the wrong one. The modules run when the page is
// there, as modules do, each in a function that returns what the module exports.
func bundle() string {
	b := bundler{done: map[string]bool{}}
	b.add("app")
	return source("theme.js") + `document.addEventListener("DOMContentLoaded", () => {"use strict";` + b.out.String() + "});"
}

type bundler struct {
	out  strings.Builder
	done map[string]bool
}

// add writes a module after those that it imports. Imports never go in a circle.
func (b *bundler) add(name string) {
	if b.done[name] {
		return
	}
	b.done[name] = true
	text := source(name + ".js")
	for _, match := range imported.FindAllStringSubmatch(text, -1) {
		b.add(match[2])
	}
	var names []string
	for _, match := range exported.FindAllStringSubmatch(text, -1) {
		names = append(names, match[2])
	}
	text = imported.ReplaceAllStringFunc(text, func(line string) string {
		if match := imported.FindStringSubmatch(line); match[1] != "" {
			return "const " + match[1] + " = " + match[2] + ";"
		}
		return "" // the module has its own name
	})
	text = exported.ReplaceAllString(text, "$1") + "return {" + strings.Join(names, ",") + "}"
	b.out.WriteString("const " + name + " = (() => {" + text + "})();\n")
}
