package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// allowedDurations are the folders, or the functions in them, that may do what
// TestTests_DependOnNoDuration refuses, and why a busy machine cannot turn them red.
var allowedDurations = map[string]string{
	"internal/chaos":                                             "breaks a program at times of chance; its verdicts are counts of jobs",
	"internal/webhook verify":                                    "the receiver of the documentation, which refuses a request of five minutes ago",
	"internal/engine handle":                                     "of stubborn, which lives in bubbles; mortal has a method of that name outside",
	"internal/poll process":                                      "of life, which is in a bubble; the life of a broker has a method of that name outside",
	"internal/poll ask":                                          "of life, as process",
	"internal/store/postgres/postgrestest answers":               "asks again until the server answers, with a deadline that only ends a hang",
	"internal/store/postgres/postgrestest waitUntil":             "the network of a benchmark, on which everything takes a certain time",
	"internal/store TestOpen_WaitsForAForkedChildOfADeadProcess": "a pause in which nothing may happen; a busy machine makes it miss a fault, not find one",
}

// TestTests_DependOnNoDuration refuses what makes a test red only because the machine is
// busy: the comparison of a measured time, a pause, and a short limit. A test looks at the
// order of events, counts, or waits for a condition with a deadline that only ends a hang.
// What measures is a benchmark. Code that only benchmarks run may do all of it, as may each
// file called _bench_test.go, and a synctest bubble, which has a clock of its own.
func TestTests_DependOnNoDuration(t *testing.T) {
	used := map[string]bool{}
	for _, p := range testPackages(t) {
		p.findMeasures()
		for f := range p.outsideBubbles() {
			for _, found := range p.offences(f) {
				name := p.dir + " " + f.Name.Name
				if allowedDurations[p.dir] == "" && allowedDurations[name] == "" {
					t.Errorf("%s: %s %s", p.files.Position(found.at), f.Name.Name, found.what)
				}
				used[p.dir], used[name] = true, true
			}
		}
	}

	for name := range allowedDurations {
		if !used[name] {
			t.Errorf("%s does nothing that it has to be allowed", name)
		}
	}
}

// testPackage is the code of a folder that only tests run.
type testPackage struct {
	dir       string // from the top of the repository
	files     *token.FileSet
	functions map[string][]*ast.FuncDecl // by name; methods of several types can share one
	variables []*ast.GenDecl             // of the package
	measures  map[measure]bool
	mentioned map[ast.Node][]*ast.FuncDecl // see mentions
}

// measure is what holds a measured time: a variable of a function, a ".field" of any type,
// or what a "function()" returns.
type measure struct {
	of   *ast.FuncDecl // nil: not a variable
	name string
}

// testPackages reads every folder that has tests, or helps tests of other folders.
func testPackages(t *testing.T) map[string]*testPackage {
	t.Helper()
	all := map[string]*testPackage{}
	for _, top := range []string{"../cmd", "../internal", "../web", "../bench", "../test"} {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.Name() == "node_modules" {
				return filepath.SkipDir
			}
			helps := strings.HasSuffix(filepath.Dir(path), "test") ||
				strings.HasPrefix(path, "../test/") && !strings.HasPrefix(path, "../test/workers/")
			if !strings.HasSuffix(path, "_test.go") && !(helps && filepath.Ext(path) == ".go") {
				return nil
			}

			dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
			if all[dir] == nil {
				all[dir] = &testPackage{
					dir: dir, files: token.NewFileSet(), functions: map[string][]*ast.FuncDecl{}, measures: map[measure]bool{},
					mentioned: map[ast.Node][]*ast.FuncDecl{},
				}
			}
			return all[dir].read(path)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (p *testPackage) read(path string) error {
	file, err := parser.ParseFile(p.files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.functions[d.Name.Name] = append(p.functions[d.Name.Name], d)
		case *ast.GenDecl:
			p.variables = append(p.variables, d)
		}
	}
	return nil
}

// each visits every function.
func (p *testPackage) each(visit func(f *ast.FuncDecl)) {
	for _, all := range p.functions {
		for _, f := range all {
			visit(f)
		}
	}
}

// mentions are the functions and methods of the package that n may call: those whose names
// stand there and are not the names of its variables.
func (p *testPackage) mentions(n ast.Node) (all []*ast.FuncDecl) {
	if known, ok := p.mentioned[n]; ok {
		return known
	}
	defer func() { p.mentioned[n] = all }()

	local := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if name, ok := to.(*ast.Ident); ok && n.Tok == token.DEFINE {
					local[name.Name] = true
				}
			}
		case *ast.Field:
			for _, name := range n.Names {
				local[name.Name] = true
			}
		}
		return true
	})

	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			all = append(all, p.named(n.Sel.Name, true)...)
			ast.Inspect(n.X, visit)
			return false
		case *ast.Ident:
			if !local[n.Name] {
				all = append(all, p.named(n.Name, false)...)
			}
		}
		return true
	}
	ast.Inspect(n, visit)
	return all
}

// named are the functions of a name, or the methods.
func (p *testPackage) named(name string, methods bool) (all []*ast.FuncDecl) {
	for _, f := range p.functions[name] {
		if (f.Recv != nil) == methods {
			all = append(all, f)
		}
	}
	return all
}

// outsideBubbles are the functions that a test runs without a bubble. A test that starts a
// bubble, itself or by a helper, counts as one that runs in it.
func (p *testPackage) outsideBubbles() map[*ast.FuncDecl]bool {
	bubbles := map[*ast.FuncDecl]bool{}
	for before := -1; before < len(bubbles); {
		before = len(bubbles)
		p.each(func(f *ast.FuncDecl) {
			starts := slices.ContainsFunc(p.mentions(f), func(other *ast.FuncDecl) bool { return bubbles[other] })
			ast.Inspect(f, func(n ast.Node) bool {
				starts = starts || isCall(n, "synctest", "Test")
				return true
			})
			if starts {
				bubbles[f] = true
			}
		})
	}

	outside := map[*ast.FuncDecl]bool{}
	var reach func(f *ast.FuncDecl)
	reach = func(f *ast.FuncDecl) {
		if outside[f] || bubbles[f] || strings.HasSuffix(p.files.Position(f.Pos()).Filename, "_bench_test.go") {
			return
		}
		outside[f] = true
		for _, other := range p.mentions(f) {
			reach(other)
		}
	}
	p.each(func(f *ast.FuncDecl) {
		if p.calledFromOutside(f) {
			reach(f)
		}
	})
	for _, d := range p.variables {
		for _, f := range p.mentions(d) {
			reach(f)
		}
	}
	return outside
}

// calledFromOutside tells whether the caller of f is not in its folder: it is a test, or
// the folder helps tests.
func (p *testPackage) calledFromOutside(f *ast.FuncDecl) bool {
	if !strings.HasSuffix(p.files.Position(f.Pos()).Filename, "_test.go") {
		return f.Name.IsExported()
	}
	return f.Recv == nil && slices.ContainsFunc([]string{"Test", "Fuzz", "Example", "init"}, func(prefix string) bool {
		return strings.HasPrefix(f.Name.Name, prefix)
	})
}

// findMeasures finds the variables, fields and functions that hold a measured time, one by
// the other.
func (p *testPackage) findMeasures() {
	for before := -1; before < len(p.measures); {
		before = len(p.measures)
		p.each(func(f *ast.FuncDecl) {
			ast.Inspect(f, func(n ast.Node) bool {
				p.follow(f, n)
				return true
			})
		})
	}
}

// follow looks where n takes a measured time.
func (p *testPackage) follow(f *ast.FuncDecl, n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if p.measured(f, n.Rhs[min(i, len(n.Rhs)-1)]) {
				p.remember(f, to)
			}
		}
	case *ast.RangeStmt:
		if n.Value != nil && p.measured(f, n.X) {
			p.remember(f, n.Value)
		}
	case *ast.KeyValueExpr:
		if field, ok := n.Key.(*ast.Ident); ok && p.measured(f, n.Value) {
			p.measures[measure{name: "." + field.Name}] = true
		}
	case *ast.ReturnStmt:
		if slices.ContainsFunc(n.Results, func(result ast.Expr) bool { return p.measured(f, result) }) {
			p.measures[measure{name: f.Name.Name + "()"}] = true
		}
	}
}

// remember keeps that a measured time was assigned.
func (p *testPackage) remember(f *ast.FuncDecl, to ast.Expr) {
	switch to := to.(type) {
	case *ast.Ident:
		p.measures[measure{f, to.Name}] = true
	case *ast.SelectorExpr:
		p.measures[measure{name: "." + to.Sel.Name}] = true
	case *ast.IndexExpr:
		p.remember(f, to.X)
	}
}

// measured tells whether an expression in f is made of a measured time.
func (p *testPackage) measured(f *ast.FuncDecl, n ast.Expr) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			found = found || p.measures[measure{f, n.Name}]
		case *ast.SelectorExpr:
			found = found || p.measures[measure{name: "." + n.Sel.Name}]
		case *ast.CallExpr:
			name := called(n)
			difference := name == "Sub" && len(n.Args) == 1
			found = found || difference || isCall(n, "time", "Since") || isCall(n, "time", "Until") || p.measures[measure{name: name + "()"}]
			return name != "len" // how many were measured is a count
		}
		return true
	})
	return found
}

// offence is something that makes the verdict of a test depend on a duration.
type offence struct {
	at   token.Pos
	what string
}

var comparisons = []token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ}

// offences are those of f. A loop may pause between two looks at its condition: in its
// header, or in a select whose other cases end it.
func (p *testPackage) offences(f *ast.FuncDecl) (all []offence) {
	between := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		loop, ok := n.(*ast.ForStmt)
		if !ok {
			return true
		}
		between[loop.Post] = true
		ast.Inspect(loop.Body, func(n ast.Node) bool {
			if clause, ok := n.(*ast.CommClause); ok && goesOn(clause) {
				between[clause.Comm] = true
			}
			return true
		})
		return true
	})

	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if slices.Contains(comparisons, n.Op) && (p.measured(f, n.X) || p.measured(f, n.Y)) {
				all = append(all, offence{n.Pos(), "compares a measured time"})
			}
		case *ast.ExprStmt:
			if !between[n] && pauses(n.X) {
				all = append(all, offence{n.Pos(), "pauses"})
			}
		case *ast.CallExpr:
			if isCall(n, "context", "WithTimeout") && short(n.Args[1]) {
				all = append(all, offence{n.Pos(), "has a limit of less than half a minute"})
			}
		}
		return true
	})
	return all
}

// goesOn tells whether a case of a select does nothing but let its loop go on.
func goesOn(clause *ast.CommClause) bool {
	if len(clause.Body) == 0 {
		return true
	}
	branch, ok := clause.Body[0].(*ast.BranchStmt)
	return ok && branch.Tok == token.CONTINUE
}

// pauses tells whether a statement lets time pass. In a select, to wait for long is a
// deadline.
func pauses(n ast.Expr) bool {
	if received, ok := n.(*ast.UnaryExpr); ok && received.Op == token.ARROW && isCall(received.X, "time", "After") {
		return short(received.X.(*ast.CallExpr).Args[0])
	}
	return isCall(n, "time", "Sleep")
}

// short tells whether a duration is written out and below half a minute.
func short(n ast.Expr) bool {
	units := map[string]time.Duration{
		"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second,
	}
	switch n := n.(type) {
	case *ast.SelectorExpr:
		return units[n.Sel.Name] > 0
	case *ast.BinaryExpr:
		factor, isNumber := n.X.(*ast.BasicLit)
		unit, isUnit := n.Y.(*ast.SelectorExpr)
		if n.Op != token.MUL || !isNumber || !isUnit {
			return false
		}
		times, err := strconv.Atoi(factor.Value)
		return err == nil && units[unit.Sel.Name] > 0 && time.Duration(times)*units[unit.Sel.Name] < 30*time.Second
	}
	return false
}

// called is the name of the function that is called, without its package or value.
func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

func isCall(n ast.Node, pkg, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || called(call) != name {
		return false
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := fun.X.(*ast.Ident)
	return ok && from.Name == pkg
}
