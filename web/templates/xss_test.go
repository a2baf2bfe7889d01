package templates_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/web/static"
	"redrive/web/templates"
	"redrive/web/templates/listpage"
	"redrive/web/templates/queuepage"
)

// hostile is what a producer could send, or an upstream answer, to act on the
// person who reads it. Each ends up in every field that holds data.
func hostile() []string {
	all := []string{
		`<script>alert(1)</script>`, `</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`,
		`"><img src=x onerror=alert(1)>`, `'><img src=x onerror=alert(1)>`, `" onmouseover="alert(1)`, `' onfocus='alert(1)' autofocus='`,
		"` onload=alert(1) `", `<svg onload=alert(1)>`, `<svg><script>alert(1)</script></svg>`, `<svg/onload=alert(1)//`,
		`<math><mi xlink:href="javascript:alert(1)">x</mi></math>`, `<iframe src=javascript:alert(1)>`, `<iframe srcdoc="<script>alert(1)</script>">`,
		`<object data=javascript:alert(1)>`, `<embed src=javascript:alert(1)>`, `<a href="javascript:alert(1)">x</a>`, `javascript:alert(1)`,
		`JaVaScRiPt:alert(1)`, "java\tscript:alert(1)", "java\nscript:alert(1)", `&#106;avascript:alert(1)`, `data:text/html,<script>alert(1)</script>`,
		`vbscript:msgbox(1)`, `//evil.example/x`, `https://evil.example/`, `\\evil.example\x`, `/\evil.example`, `../../../admin`, `..%2f..%2fadmin`,
		`x/../../queues`, `?state=dead_letter&queue=x`, `#main`, `<base href="https://evil.example/">`, `<meta http-equiv=refresh content="0;url=https://evil.example">`,
		`<form action=https://evil.example><button>`, `<input autofocus onfocus=alert(1)>`, `<textarea>`, `</textarea><script>alert(1)</script>`,
		`<title></title><script>alert(1)</script>`, `</title><script>alert(1)</script>`, `<!--`, `--><script>alert(1)</script>`, `<![CDATA[<script>alert(1)</script>]]>`,
		`<style>*{display:none}</style>`, `</style><script>alert(1)</script>`, `<link rel=stylesheet href=https://evil.example/x.css>`, `<body onload=alert(1)>`,
		`<details open ontoggle=alert(1)>`, `<video><source onerror=alert(1)>`, `<marquee onstart=alert(1)>`, `<x onclick=alert(1)>x</x>`,
		`<template data-pattern="answer"><img src=x onerror=alert(1)></template>`, `<tr data-job="x"><td>`, `</td></tr></table><h1>Deleted</h1>`,
		`=cmd|' /C calc'!A0`, `=cmd()`, `+1+1`, `@SUM(1+1)`, `-2+3`, `{{constructor.constructor('alert(1)')()}}`, `${alert(1)}`, `<%= 7*7 %>`, `{ children... }`,
		"\x00<script>", "a\x00b", "\x1b[31mred\x1b[0m", "a\rb", "a\r\nSet-Cookie: x=1", "\x7f", "\u0085", "\u202eevil\u202c", "\u2066x\u2069", "\u200b\u200d\ufeff",
		"\u2028\u2029", "\U000e0041", "\xff\xfe", "\xc3\x28", "\u061c\u200e\u200f", "𝔘𝔫𝔦", strings.Repeat("A", 300), strings.Repeat("<", 200), strings.Repeat("\u0301", 100),
	}
	return all
}

// poisoned is a job whose every string is s.
func poisoned(s string, status job.Status) job.Job {
	j := failure(0, status)
	j.Type, j.Queue, j.Worker, j.Payload, j.Key = s, s, s, []byte(s), s
	j.Error = job.ErrorInfo{Type: s, Message: s}
	if status != job.Status(job.Retryable) {
		j.Reason = retry.Reason(s)
	}
	return j
}

// poisonedPages is each page with s wherever data can stand.
func poisonedPages(s string) map[string]page {
	f := frame("jobs", s)
	f.Search.Text, f.Problem, f.Insecure = s, s, true
	f.Demo = &templates.Demo{Until: s, Faults: []templates.Fault{{Name: s, Title: s, About: s, Broken: true}, {Name: s, Title: s, About: s}}}
	rows := []job.Job{poisoned(s, job.StatusDeadLetter), poisoned(s, job.Status(job.Retryable)), poisoned(s, job.StatusDLQFailed), poisoned(s, job.StatusHeld)}
	q := queue(s, 2, stats.Depths{"available": 3, "dead_letter": 4, "dlq_failed": 1})
	q.PausedAt, q.PausedBy = now, s
	idle := queue(s, 1, stats.Depths{"available": 3, "dead_letter": 4})
	deadLetter := filter.DeadLetterRow{Job: rows[0], DeadLetter: job.DeadLetter{JobID: rows[0].ID, Run: 1, Reason: retry.Reason(s), Error: s, Exception: s, FailedAt: now, Queue: s, Attempts: 2, ReplayedBy: s}}
	query := filter.Filter{Status: job.Status(s), Queue: s, Type: s, Error: s, Reason: retry.Reason(s)}
	reasons := []filter.ReasonCount{{Reason: retry.Reason(s), Count: 3}}
	facets := filter.Facets{Reasons: reasons, Queues: []filter.NameCount{{Name: s, Count: 2}, {Name: "x", Count: 1}}, Types: []filter.NameCount{{Name: s, Count: 2}}}
	above := listpage.Query{Typed: s, Tally: filter.Tally{Facets: facets}, Dead: facets, Queues: []string{s, "x"}, Lag: 3}
	refused := []templates.Refused{{Job: rows[2], Problem: s}, {Job: rows[0], Problem: s}}
	return map[string]page{
		"overview":     templates.Overview{Frame: f, LastHour: hour(3, 2, 1), Queues: []queues.Info{q}, Failing: rows, Refused: refused, Reasons: reasons},
		"jobs":         listpage.Jobs{Frame: f, Filter: query, List: filter.List{Jobs: rows, Next: filter.Cursor{At: now, Seq: 1}}, After: s, Slow: true, Errors: map[string]string{s: s, "type": s}, Query: above},
		"jobs-empty":   listpage.Jobs{Frame: f, Filter: query},
		"dead-letters": listpage.DeadLetters{Frame: f, Filter: query, List: filter.DeadLetterList{DeadLetters: []filter.DeadLetterRow{deadLetter}}, After: s, Refused: refused, Query: above, Errors: map[string]string{"error": s}},
		"queues": queuepage.List{
			Frame: f, Queues: []queues.Info{q, idle}, Held: []queues.Held{{Queue: s, Type: s, Count: 2}, {Queue: "x", Type: s, Count: 2}},
			Configs: map[string]templates.QueueConfig{"x": {ForwardedTo: s, Policy: retry.Policy{Strategy: retry.Strategy(s), OnExhaustion: retry.Action(s)}}},
		},
		"policies":       poisonedPolicies(f, s, false),
		"policies-wrong": poisonedPolicies(f, s, true),
		"problem":        templates.Problem{Frame: f, Status: 404, Title: s, Text: s, RequestID: s},
		"conflict":       templates.Conflict{Frame: f, Action: s, Err: &job.Conflict{Problem: s, Job: rows[0], ReplayedAt: now, ReplayedBy: s}},
		"access":         poisonedAccess(f, s),
		"operation":      poisonedOperation(f, s, rows[0]),
		"conflict-state": templates.Conflict{Frame: f, Action: "cancel", Err: &job.Conflict{Problem: s, Job: rows[1]}},
	}
}

// shape is the page without what it says: elements with the names of their
// attributes. Data must not change it.
func shape(d tree) string {
	var b strings.Builder
	for n := range d.root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			fmt.Fprintf(&b, "<%s", n.Data)
			for _, a := range n.Attr {
				b.WriteString(" " + a.Key)
			}
			b.WriteString(">\n")
		case html.CommentNode:
			b.WriteString("<!-- -->\n")
		}
	}
	return b.String()
}

// Here with every sixth hostile text.
func TestPages_DataNeverBecomesMarkup(t *testing.T) { neverBecomesMarkup(t, some(hostile(), 6)) }

func TestLong_PagesDataNeverBecomesMarkup(t *testing.T) { neverBecomesMarkup(t, hostile()) }

// some is one of every few texts, the first one included.
func some(all []string, stride int) (few []string) {
	for i := 0; i < len(all); i += stride {
		few = append(few, all[i])
	}
	return few
}

func neverBecomesMarkup(t *testing.T, texts []string) {
	t.Helper()
	want := map[string]string{}
	for name, p := range poisonedPages("harmless") {
		want[name] = shape(parse(t, p))
	}
	for _, s := range texts {
		for name, p := range poisonedPages(s) {
			d := parse(t, p)
			if got := shape(d); got != want[name] {
				t.Errorf("%s: %q changes the elements of the page: %s", name, s, firstDifference(got, want[name]))
			}
			checkInert(t, d, fmt.Sprintf("%s with %q", name, s))
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("element %d is %s, want %s", i, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d elements, want %d", len(g), len(w))
}

// checkInert checks that nothing on the page runs, styles or leads out on its own.
func checkInert(t *testing.T, d tree, where string) {
	t.Helper()
	for n := range d.root.Descendants() {
		if n.Type == html.TextNode {
			checkVisible(t, n.Data, where+": a text")
		}
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" && (n.FirstChild != nil || !strings.HasPrefix(value(n, "src"), "/static/")) {
			t.Errorf("%s: a script is inline or from elsewhere: %v", where, n.Attr)
		}
		if n.Data == "style" || n.Data == "base" || n.Data == "iframe" {
			t.Errorf("%s: there is a <%s>", where, n.Data)
		}
		for _, a := range n.Attr {
			checkAttribute(t, n, a, where)
		}
	}
}

func checkAttribute(t *testing.T, n *html.Node, a html.Attribute, where string) {
	t.Helper()
	switch {
	case a.Val == static.Icon() && n.Data == "link":
	case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
		t.Errorf("%s: <%s> has the attribute %s", where, n.Data, a.Key)
	case a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction":
		checkLocal(t, a.Val, where)
	case a.Key == "value" && (n.Data == "input" || n.Data == "option"), strings.HasPrefix(a.Key, "data-"):
		// Sent back as it came, never shown.
	default:
		checkVisible(t, a.Val, where+": "+a.Key)
	}
}

// checkLocal: a link stays on this host, and on the pages that exist.
func checkLocal(t *testing.T, link, where string) {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(link, "//") || strings.Contains(link, `\`) {
		t.Errorf("%s: %q leads outside", where, link)
		return
	}
	if strings.HasPrefix(link, "#") {
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	switch first {
	case "", "jobs", "queues", "dead-letters", "failures", "operations", "trash", "workers", "sources", "retention", "audit", "audit.csv", "audit.ndjson", "access", "login", "logout", "policies", "api", "demo", "static", "export.csv", "export.ndjson", "failures.csv", "failures.ndjson":
	default:
		t.Errorf("%s: %q leads to a page that does not exist", where, link)
	}
}

func checkVisible(t *testing.T, s, where string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%s holds the hidden character %U", where, r)
			return
		}
	}
}
