package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// oddWords are phrases that stopped readers, each with what to write instead. They are
// regular expressions, and case does not matter.
var oddWords = []struct{ odd, plain string }{
	{"(, |[(])as [\"`'0-9/$[{]|, as [a-z]+[.:][a-z*]|(time|path|pattern|address|rate|network|duration) as [\"`'0-9/$[{]", "for example, such as"},
	{`\b(nobody|somebody|everybody)\b`, "no one, someone, everyone"},
	{`\bby (itself|themselves)\b`, "automatically"},
	{`(failed|fails?|failure) for good|gone for good`, "permanently"},
	{`\bfor ever\b`, "forever"},
	{`\blies? there\b`, "is there, is at the source"},
	{`\banew\b`, "again, from the start; to rebuild"},
	{`comes? into being`, "is created"},
	{`\b(is|are) no (qualifier|value|number|duration|time|path|pattern|character|terminal|text|failure|json)\b`, "is not a"},
	{`cannot stand beside|go(es)? round in a circle`, "cannot be used together, refers to itself"},
	{`as fast as (it goes|possible)`, "no limit"},
	{"[\"`](dashboard|api) at ", "local user (127.0.0.1), API client (…)"},
	{`(is|are) tried again`, "Redrive will try again"},
	{`the standard (input|output|error)`, "standard input"},
	{`the shelf of a job|only discarded jobs have|audited removals|items? before their position|each flag but|repeats its state`, "what is wrong, and what to do"},
	{`says whose word|say who does the work|leave the house`, "where each field comes from"},
	{`that are made to cost|(jobs|queue|types?|one) that says? nothing|about which nobody says`, "used when no other policy applies"},
	{`can be expected to|it opens by|did not end it|none decided`, "Handler: no verdict, no rule matched"},
	{`failures like this|first of its kind`, "similar failures, first occurrence"},
	{`mend the (cause|producer)|a replay alone changes nothing`, "Fix the cause"},
	{`what can be written here|words that all have to hold|counted without one other`, "Filter syntax, All terms must match"},
	{`reload to see what is newer|order and news wait`, "Reload for newer jobs"},
	{`ended by a person|asked for by|jobs collected for`, "stopped manually, requested by, selected by"},
	{`by the quarter of an hour|dlq failed|that nobody has`, "per 15 min, dead letter refused, have no handler"},
	{`hollow has not ended|that are not over`, "outline = not finished, active"},
	{`cannot be found out later|as histories show it|this is the end|nothing is here|keep note`, "Copy it now; it won't be shown again"},
	{`that nothing will retry|(is|are) found in some`, "dead jobs; it will not run again unless you replay it"},
}

// TestWords_ArePlain holds odd phrases out of everything that users read: pages,
// messages, help and documents.
func TestWords_ArePlain(t *testing.T) {
	var phrases []phrase
	for _, w := range oddWords {
		phrases = append(phrases, newPhrase(w.odd))
	}

	for place, text := range prose(t) {
		text = strings.ToLower(text)
		for i, odd := range phrases {
			found := odd.find(text)
			if found != "" {
				t.Errorf("%s: %q reads oddly; write: %s", place, found, oddWords[i].plain)
			}
		}
	}
}

// phrase is an odd phrase that is searched for in a hundred thousand lines, of which few have
// it: only those in which one of its parts stands are matched against the regular expression.
type phrase struct {
	form  *regexp.Regexp
	parts []string // each match has one of them
}

func newPhrase(odd string) phrase {
	form := regexp.MustCompile(odd)
	parsed, err := syntax.Parse(odd, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return phrase{form, partsOf(parsed)}
}

// find is the first match in a text; empty when there is none.
func (p phrase) find(text string) string {
	has := func(part string) bool { return strings.Contains(text, part) }
	if len(p.parts) > 0 && !slices.ContainsFunc(p.parts, has) {
		return ""
	}
	return p.form.FindString(text)
}

// partsOf are literal texts of which each match of an expression has at least one; none when
// there are no such texts.
func partsOf(e *syntax.Regexp) (parts []string) {
	switch e.Op {
	case syntax.OpLiteral:
		return []string{string(e.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return partsOf(e.Sub[0])
	case syntax.OpAlternate:
		for _, choice := range e.Sub {
			of := partsOf(choice)
			if len(of) == 0 {
				return nil
			}
			parts = append(parts, of...)
		}
	case syntax.OpConcat: // those that are longest, which fewer texts have
		for _, step := range e.Sub {
			of := partsOf(step)
			if shortest(of) > shortest(parts) {
				parts = of
			}
		}
	}
	return parts
}

// shortest is the length of the shortest text.
func shortest(texts []string) (n int) {
	for i, text := range texts {
		if i == 0 || len(text) < n {
			n = len(text)
		}
	}
	return n
}

// TestPhrase_FindsWhatItsExpressionFinds: the search for parts leaves out no match.
func TestPhrase_FindsWhatItsExpressionFinds(t *testing.T) {
	for _, odd := range slices.Concat(oddWords, archaic) {
		for _, sentence := range []string{
			"nobody whoever anew for ever, for good", "it was gone for good by themselves", "(as 12) the path as [a-z]", "it lies there, it lies dead",
			"is no text", "cannot stand beside", "it takes note of a farewell", "as fast as it goes", "the standard error is tried again", odd.plain,
		} {
			want := regexp.MustCompile(odd.odd).FindString(sentence)
			if got := newPhrase(odd.odd).find(sentence); got != want {
				t.Errorf("%s in %q: found %q, want %q", odd.odd, sentence, got, want)
			}
		}
	}
}

// prose is what users read, by its place: the strings of programs, and the lines of
// pages, scripts and documents without their comments.
func prose(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				texts[s.dir+"/"+s.name+":"+strconv.Itoa(s.line(literal))] += literal.Value + "\n"
			}
			return true
		})
	}
	for _, top := range []string{"../web", "../docs", "../deploy", "../README.md", "../SECURITY.md", "../CONTRIBUTING.md", "../internal/server/api/openapi.json"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".templ", ".js", ".md", ".json"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				if !strings.HasPrefix(strings.TrimSpace(line), "//") {
					texts[strings.TrimPrefix(path, "../")+":"+strconv.Itoa(i+1)] = line
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// archaic are words that no English program is commented in today, each with what to write
// instead. They are regular expressions.
var archaic = []struct{ odd, plain string }{
	{`\b(no|some|every|any)body\b`, "no one, someone, everyone, anyone; or who it is: a user, a client, a worker"},
	{`\bwho(m)?ever\b`, "the user who, a client that, the caller"},
	{`\banew\b`, "again; to rebuild"},
	{`\bfor ever\b`, "forever, indefinitely"},
	{`\bfor good\b`, "permanently"},
	{`\b(takes?|took|taken) note\b`, "records, remembers"},
	{`\bby (itself|themselves)\b`, "automatically, alone"},
	{`\bfarewell\b`, "rejection"},
	{`\blie(s)? (dead|there|in the|in a|at its|at their)\b`, "is, is stored, exists"},
}

// TestWords_OfCommentsAreOfToday holds such words out of the comments of programs, pages and
// scripts, tests included.
func TestWords_OfCommentsAreOfToday(t *testing.T) {
	comment := regexp.MustCompile(`(?:^|\s)//.*`)
	var odd []phrase
	for _, w := range archaic {
		odd = append(odd, newPhrase(w.odd))
	}

	for _, top := range []string{"../cmd", "../internal", "../web", "../bench", "../test"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			isCode := slices.Contains([]string{".go", ".templ", ".js"}, filepath.Ext(path)) && !strings.HasSuffix(path, "_templ.go")
			if err != nil || d.IsDir() || !isCode || strings.Contains(path, "testdata") || strings.Contains(path, "node_modules") {
				return err
			}
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				if !strings.Contains(line, "//") {
					continue
				}
				said := strings.ToLower(comment.FindString(line))
				for n, form := range odd {
					found := form.find(said)
					if found != "" {
						t.Errorf("%s:%d: %q is of another century; write: %s", strings.TrimPrefix(path, "../"), i+1, found, archaic[n].plain)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ownWords are parts of names for which the field has a word that every reader knows, each
// with that word. A letter that is dead may be called so.
var ownWords = map[string]string{
	"anew": "again", "anybody": "anyone", "everybody": "all", "nobody": "none, or who it is not", "somebody": "a user, a client",
	"whoever": "the user, the client",

	"announcement": "removal notice", "memories": "tombstones", "excess": "over the count", "crowd": "full", "crowded": "full",
	"farewell": "rejection", "dismiss": "evict", "victim": "evicted", "herd": "simulation",

	"hand": "prefetch", "hands": "prefetch", "offer": "dispatch", "taker": "dispatcher, worker",
	"redeem": "release", "promise": "reserve",

	"handed": "returned", "heard": "told", "hears": "is told", "lacks": "unsupported", "wish": "request", "wishes": "requests",
	"lie": "present", "lies": "present", "lying": "present", "news": "unseen records, changes", "untold": "not attempted",
	"thread": "lineage", "twin": "duplicate", "twins": "duplicates", "witness": "version token",

	"letter": "dead letter; or character", "letters": "dead letters; or characters",
}

// ownMeaning are the places in which such a word means what it says.
var ownMeaning = map[string]string{
	"thread": "internal/errortext/ internal/handler/programs_linux.go", // of a program
	"letter": "internal/fingerprint/chars.go internal/source/codec/",   // of an alphabet
}

// TestWords_OfNamesAreThoseOfTheField holds such words out of the names that programs and
// tests declare.
func TestWords_OfNamesAreThoseOfTheField(t *testing.T) {
	files := token.NewFileSet()

	for _, top := range []string{"../cmd", "../internal", "../web", "../bench", "../test"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			isCode := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_templ.go")
			if err != nil || d.IsDir() || !isCode || strings.Contains(path, "testdata") || strings.Contains(path, "node_modules") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			for _, name := range declared(file) {
				before := ""
				for _, word := range wordsOf(name.Name) {
					plain, odd := ownWords[word]
					for _, place := range strings.Fields(ownMeaning[word]) {
						odd = odd && !strings.HasPrefix(strings.TrimPrefix(path, "../"), place)
					}
					if odd && (before != "dead" || !strings.HasPrefix(word, "letter")) {
						t.Errorf("%s: %s: the field does not say %q; write: %s",
							strings.TrimPrefix(files.Position(name.Pos()).String(), "../"), name.Name, word, plain)
					}
					before = word
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wordsOf are the words of a name, in lower case: "TestADeadLetter" has test, a, dead, letter.
func wordsOf(name string) (words []string) {
	begin := 0
	for i := 1; i < len(name); i++ {
		inner := unicode.IsUpper(rune(name[i])) && (!unicode.IsUpper(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1])))
		if inner || name[i] == '_' {
			words = append(words, strings.ToLower(strings.Trim(name[begin:i], "_")))
			begin = i
		}
	}
	return append(words, strings.ToLower(strings.Trim(name[begin:], "_")))
}

// declared are the names that a file declares, those of fields, parameters and variables
// included.
func declared(file *ast.File) (names []*ast.Ident) {
	add := func(all ...ast.Expr) {
		for _, e := range all {
			if name, ok := e.(*ast.Ident); ok {
				names = append(names, name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE && n.Key != nil {
				add(n.Key)
			}
			if n.Tok == token.DEFINE && n.Value != nil {
				add(n.Value)
			}
		}
		return true
	})
	return names
}
