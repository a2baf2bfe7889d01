package templates_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"redrive/internal/audit"
	"redrive/internal/operation"
	"redrive/web/templates/adminpage"
)

// actions are those that the code writes into the audit log: all texts in the
// packages that write it that look like one.
func actions(t *testing.T) []string {
	t.Helper()
	looks := regexp.MustCompile(`^((job|queue|operation|group|worker|retention|login|session|user|token|export|config)\.[a-z]+|login|logout|export)$`)
	var all []string
	for _, dir := range []string{"audit", "store", "server"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "internal", dir), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil && looks.MatchString(text) {
						all = append(all, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// options are the values of the list of actions.
func options(t *testing.T) (all []string) {
	t.Helper()
	for _, n := range parse(t, adminpage.Audit{Frame: frame("audit", "Audit")}).nodes(func(n *html.Node) bool { return n.Data == "option" }) {
		if value, _ := attr(n, "value"); value != "" {
			all = append(all, value)
		}
	}
	return all
}

func TestAudit_EveryActionCanBeChosen(t *testing.T) {
	written, chosen := actions(t), options(t)
	if len(written) < 30 {
		t.Fatalf("only %d actions were found: %q", len(written), written)
	}
	for _, action := range written {
		if !slices.Contains(chosen, action) {
			t.Errorf("%s is not in the list", action)
		}
	}
	for _, option := range chosen {
		prefix, wild := strings.CutSuffix(option, "*")
		if !slices.ContainsFunc(written, func(a string) bool { return a == option || wild && strings.HasPrefix(a, prefix) }) {
			t.Errorf("%s finds nothing", option)
		}
	}
}

func TestAudit_LeadsToWhatWasActedOn(t *testing.T) {
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	for want, e := range map[string]audit.Entry{
		"/jobs/" + id:     {Action: "job.replay", Subject: id},
		"/queues/orders":  {Action: "queue.pause", Subject: "orders"},
		"/operations/4":   {Action: "operation.start", Subject: operation.Subject(4)},
		"/failures/abc12": {Action: "group.note", Subject: "abc12"},
	} {
		v := adminpage.Audit{Frame: frame("audit", "Audit"), List: audit.List{Entries: []audit.Entry{e}}}
		if found := parse(t, v).with("href", want); len(found) == 0 {
			t.Errorf("%s of %s does not lead to %s", e.Action, e.Subject, want)
		}
	}
}

// An address that is part of the name is not said again, and the change comes before the
// scope, which fills its line.
func TestAudit_SaysWhoOnceAndTheChangeFirst(t *testing.T) {
	v := adminpage.Audit{Frame: frame("audit", "Audit")}
	v.List.Entries = []audit.Entry{
		{At: now, Actor: audit.Actor{Name: "local user (127.0.0.1)", Address: "127.0.0.1"}, Action: "operation.pause", Before: "running", After: "paused", Filter: "state:dead_letter"},
		{At: now, Actor: audit.Actor{Name: "ana", Address: "192.0.2.9"}, Action: "queue.pause"},
	}
	page := parse(t, v)
	page.says("class", "at-error", "running → paused state:dead_letter")
	for i, want := range []string{"local user (127.0.0.1)", "ana 192.0.2.9"} {
		if got := text(page.with("class", "at-lead")[i]); got != want {
			t.Errorf("who: %q, want %q", got, want)
		}
	}
}
