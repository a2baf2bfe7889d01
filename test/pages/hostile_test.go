// Package pages_test walks all pages of the built program and looks for what must be in none.
package pages_test

import (
	"bufio"
	"encoding/csv"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"redrive/test/rig"
	"redrive/test/site"
	"redrive/web/static"
)

// hostile are the strings of testdata/hostile.txt.
func hostile(t *testing.T) []string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "hostile.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if line[0] == '"' {
			if line, err = strconv.Unquote(line); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
		}
		all = append(all, line)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// harmless has the shape of s, and nothing in it that means anything to HTML.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return 'x'
	}, s)
}

// asked are addresses in which the words are parameters, of every page in turn:
// of every parameter, or of those that any text fits.
func asked(routes, words []string) []string {
	var all []string
	for i, word := range words {
		route := routes[i/2%len(routes)]
		if strings.Contains(route, ":") || strings.HasPrefix(route, "/export.") { // no page
			route = "/jobs"
		}
		names := []string{"q", "type", "queue", "error", "reason", "state", "from", "after", "sort", "preset", "schedule"}
		if i%2 == 0 {
			names = []string{"type", "error"}
		}
		query := url.Values{}
		for _, name := range names {
			query.Set(name, word)
		}
		all = append(all, route+"?"+query.Encode())
	}
	return all
}

// outline is what a page is made of, without what it says: each element with the
// names of its attributes, and that in which it stands.
func outline(root *html.Node) map[string]bool {
	seen := map[string]bool{}
	var visit func(n *html.Node, within string)
	visit = func(n *html.Node, within string) {
		switch n.Type {
		case html.ElementNode:
			var names []string
			for _, a := range n.Attr {
				names = append(names, a.Key)
			}
			slices.Sort(names)
			element := n.Data + "[" + strings.Join(names, " ") + "]"
			seen[within+" > "+element] = true
			within = element
		case html.CommentNode:
			seen[within+" > <!-- -->"] = true
		}
		for child := range n.ChildNodes() {
			visit(child, within)
		}
	}
	visit(root, "")
	return seen
}

// Whatever is enqueued, fails, is asked for or done: nothing on a page runs, styles or
// leads out on its own. This is tested here with one hostile word of 16, on fewer pages;
// internal/server tests that the words stand there as text.
func TestPages_NothingOfTheDataActs(t *testing.T) {
	t.Parallel()
	var some []string
	for i, word := range hostile(t) {
		if i%16 == 0 {
			some = append(some, word)
		}
	}
	crawlShop(t, some, site.Reach{Addresses: 1, Kinds: 4}, 1, func(p site.Page) { checkInert(t, p) })
}

// Nor does any word act on any page, nor become an element, an attribute or a comment.
func TestLong_PagesDataNeverBecomesMarkup(t *testing.T) {
	t.Parallel()
	words := hostile(t)
	if len(words) < 500 {
		t.Fatalf("%d hostile words, want 500", len(words))
	}
	tame := []string{"https://user:pass@example.org/"} // what is redacted has a button to reveal it
	for _, word := range words {
		tame = append(tame, harmless(word))
	}
	const stride = 5
	tame = slices.Insert(tame, stride, strings.Repeat("long ", 50)) // what is long is folded
	tame = slices.Insert(tame, 2*stride, "several\nlines of\ntext") // and lines are kept
	want := map[string]bool{}
	crawlShop(t, tame, site.Reach{Addresses: 12, Kinds: 12}, stride, func(p site.Page) {
		maps.Copy(want, outline(p.Root))
	})
	pages := 0
	crawlShop(t, words, site.Reach{Addresses: 6, Kinds: 12}, 1, func(p site.Page) {
		pages++
		for element := range outline(p.Root) {
			if !want[element] {
				t.Errorf("%s has an element that comes from data: %s", p.Path, element)
			}
		}
		checkInert(t, p)
	})
	t.Logf("%d pages, %d words", pages, len(words))
}

// crawlShop opens what links lead to as far as the reach goes, and one word of
// each stride in every field: in the page of its dead letter, and asked for.
func crawlShop(t *testing.T, words []string, reach site.Reach, stride int, visit func(site.Page)) {
	t.Helper()
	url := site.OpenShop(t, words)
	var more, some []string
	for i, word := range words {
		if i%stride == 0 {
			more, some = append(more, "/jobs/"+site.HostileID("dead", i)), append(some, word)
		}
	}
	for _, id := range rig.DeadLettersOf(t, url, "annex") {
		more = append(more, "/jobs/"+id)
	}
	routes := site.PageRoutes(t)
	more = append(more, asked(routes, some)...)
	for _, route := range routes { // mistakes that harmless words do not make
		if !strings.Contains(route, ":") {
			more = append(more, route+"?q=nothing:here", route+"?q=ab", route+"?state=wrong", route+"?from=wrong&type=x", route+"?type=x&from=2026-01-01", route+"?type=x*")
		}
	}
	site.Walk(t, url, reach, more, visit)
}

// checkInert fails for whatever acts on its own on a page.
func checkInert(t *testing.T, p site.Page) {
	t.Helper()
	for n := range p.Root.Descendants() {
		switch {
		case n.Type == html.TextNode && (n.Parent == nil || n.Parent.Data != "script"):
			if r := hidden(n.Data); r != 0 {
				t.Errorf("%s: the text %q holds the hidden character %U", p.Path, n.Data, r)
			}
		case n.Type == html.ElementNode:
			checkElement(t, p.Path, n)
		}
	}
}

func checkElement(t *testing.T, path string, n *html.Node) {
	t.Helper()
	if slices.Contains([]string{"style", "base", "iframe", "object", "embed", "frame", "portal", "animate", "set", "foreignobject", "math"}, n.Data) {
		t.Errorf("%s: there is a <%s>", path, n.Data)
	}
	if n.Data == "script" && (n.FirstChild != nil || !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "src" })) {
		t.Errorf("%s: a script is inline: %v", path, n.Attr)
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "style" || a.Key == "srcdoc" || a.Key == "ping" || a.Key == "http-equiv" || strings.HasPrefix(a.Key, "on"):
			t.Errorf("%s: <%s> has the attribute %s", path, n.Data, a.Key)
		case slices.Contains([]string{"href", "src", "action", "formaction", "srcset", "poster", "data", "background", "cite"}, a.Key):
			if !local(a.Val) && a.Val != static.Icon() { // the icon of the tab is a picture in the page itself
				t.Errorf("%s: <%s %s> leads to %q", path, n.Data, a.Key, a.Val)
			}
		}
	}
}

// local reports whether a link stays on this host.
func local(link string) bool {
	u, err := url.Parse(link)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && !strings.HasPrefix(link, "//") &&
		!strings.Contains(link, `\`) && (link == "" || strings.ContainsRune("/#?", rune(link[0])))
}

// hidden is the first character that a reader could not see, or 0.
func hidden(s string) rune {
	for _, r := range s {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return r
		}
	}
	return 0
}

// No cell of an export is read as a formula, whatever the data begins with.
// Here with one hostile word of 8.
func TestExport_NoCellIsAFormula(t *testing.T) { noCellIsAFormula(t, 8) }

func TestLong_ExportNoCellIsAFormula(t *testing.T) { noCellIsAFormula(t, 1) }

func noCellIsAFormula(t *testing.T, stride int) {
	t.Parallel()
	var words []string
	for i, word := range hostile(t) {
		if i%stride == 0 {
			words = append(words, word)
		}
	}
	response, err := http.Get(site.OpenShop(t, words) + "/export.csv?state=dead_letter")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	rows, err := csv.NewReader(response.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if least := len(words) / 2; len(rows) < least {
		t.Fatalf("%d rows, want more than %d", len(rows), least)
	}
	guarded := 0
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a cell begins as a formula: %q", cell)
			}
			if strings.HasPrefix(cell, "'=") {
				guarded++
			}
		}
	}
	if guarded == 0 {
		t.Error("none of the hostile cells is there")
	}
}
