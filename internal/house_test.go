package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The bounds of a room: what a reader can keep in mind. Tests, generated files
// and packages that only tests import are not counted.
const (
	maxFiles    = 25  // of a package
	maxExported = 100 // names of a package
	maxFile     = 400 // lines
	maxMethods  = 8   // of an interface
	maxFunction = 60  // statements of a function
	maxLine     = 140 // characters
)

// source is a file of the house.
type source struct {
	dir   string // from the top of the repository
	name  string
	text  string
	file  *ast.File
	files *token.FileSet
}

// path is the file's name from the top of the repository.
func (s source) path() string { return s.dir + "/" + s.name }

// line is where a node begins.
func (s source) line(n ast.Node) int { return s.files.Position(n.Pos()).Line }

// sources are all files that ship. They are read and parsed once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var parsed = sync.OnceValues(func() (all []source, err error) {
	for _, top := range []string{"../cmd", "../internal", "../web"} {
		err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !ships(path) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
			all = append(all, source{
				dir: strings.TrimPrefix(filepath.Dir(path), "../"), name: filepath.Base(path), text: string(text), file: file,
				files: files,
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

func ships(path string) bool {
	for _, part := range []string{"_test.go", "_templ.go", "test/"} {
		if strings.Contains(path, part) {
			return false
		}
	}
	return strings.HasSuffix(path, ".go")
}

// TestHouse_StaysReadable holds the bounds. With -v it tells the figures of every
// package.
func TestHouse_StaysReadable(t *testing.T) {
	files, exports := map[string]int{}, map[string]int{}
	var functions []int
	code, comments := 0, 0
	for _, s := range sources(t) {
		files[s.dir]++
		exports[s.dir] += exported(s.file)
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				n := statements(f)
				functions = append(functions, n)
				if n > maxFunction {
					t.Errorf("%s/%s: %s has %d statements, at most %d are allowed", s.dir, s.name, f.Name, n, maxFunction)
				}
			}
		}
		lines := strings.Split(s.text, "\n")
		if n := len(lines) - 1; n > maxFile {
			t.Errorf("%s has %d lines, at most %d are allowed", s.path(), n, maxFile)
		}
		for name, n := range interfaces(s.file) {
			if n > maxMethods {
				t.Errorf("%s: the interface %s has %d methods, at most %d are allowed", s.path(), name, n, maxMethods)
			}
		}
		for i, line := range lines {
			switch trimmed := strings.TrimSpace(line); {
			case strings.HasPrefix(trimmed, "//"):
				comments++
			case trimmed != "":
				code++
			}
			if n := len([]rune(line)); n > maxLine {
				t.Errorf("%s/%s:%d has %d characters, at most %d are allowed", s.dir, s.name, i+1, n, maxLine)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		t.Logf("%-28s %2d files, %3d exported names", dir, files[dir], exports[dir])
		if files[dir] > maxFiles || exports[dir] > maxExported {
			t.Errorf("%s has %d files and %d exported names, at most %d and %d are allowed", dir, files[dir], exports[dir], maxFiles, maxExported)
		}
	}
	slices.Sort(functions)
	n := len(functions)
	t.Logf("%d functions: median %d, p95 %d, max %d statements; %d lines of code, %d of comments, density %.2f",
		n, functions[n/2], functions[n*95/100], functions[n-1], code, comments, float64(comments)/float64(code))
}

// TestHouse_OnlyMainOwnsTheProcess: a package that ends the process or hears its signals
// cannot be used twice in one, nor tested in it.
func TestHouse_OnlyMainOwnsTheProcess(t *testing.T) {
	calls := map[string][]string{
		"os":     {"Exit"},
		"log":    {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
		"signal": {"Notify", "NotifyContext", "Ignore", "Stop", "Reset"},
	}
	for _, s := range sources(t) {
		if s.file.Name.Name == "main" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := call.X.(*ast.Ident)
			if ok && slices.Contains(calls[of.Name], call.Sel.Name) {
				t.Errorf("%s/%s:%d: only a main package calls %s.%s", s.dir, s.name, s.line(call), of.Name, call.Sel.Name)
			}
			return true
		})
	}
}

// exported counts the names that other packages can use: types, functions,
// methods of exported types, constants and variables.
func exported(f *ast.File) (n int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					n += count(spec.Name)
				case *ast.ValueSpec:
					n += count(spec.Names...)
				}
			}
		}
	}
	return n
}

// interfaces counts the methods of the named interfaces of a file. One that is embedded
// counts as one.
func interfaces(f *ast.File) map[string]int {
	found := map[string]int{}
	ast.Inspect(f, func(node ast.Node) bool {
		if spec, ok := node.(*ast.TypeSpec); ok {
			if typ, ok := spec.Type.(*ast.InterfaceType); ok {
				for _, field := range typ.Methods.List {
					found[spec.Name.Name] += max(1, len(field.Names))
				}
			}
		}
		return true
	})
	return found
}

func count(names ...*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

// receiver is the type of a method.
func receiver(f *ast.FuncDecl) string {
	switch t := f.Recv.List[0].Type.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		if name, ok := t.X.(*ast.Ident); ok {
			return name.Name
		}
	}
	return ""
}

// statements counts those of a function, with those of the functions in it. Lines are not
// counted: a blank line between two steps is to cost nothing.
func statements(f *ast.FuncDecl) (n int) {
	ast.Inspect(f, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.LabeledStmt, *ast.EmptyStmt:
		case ast.Stmt:
			n++
		}
		return true
	})
	return n
}

// TestHouse_FoldsNothing refuses what saves a line and costs a reader a second look: an
// assignment in the header of an if whose condition does not use it, or to a variable of the
// lines around it, a for with a first statement and no last one, and four or more values that
// are assigned at once.
func TestHouse_FoldsNothing(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(node ast.Node) bool {
			what := folded(node)
			if what != "" {
				t.Errorf("%s/%s:%d %s", s.dir, s.name, s.line(node), what)
			}
			return true
		})
	}
}

// folded says what a node folds into one line; empty when it is nothing.
func folded(node ast.Node) string {
	switch n := node.(type) {
	case *ast.IfStmt:
		first, assigns := n.Init.(*ast.AssignStmt)
		switch {
		case assigns && !usesAny(n.Cond, first.Lhs):
			return "assigns in the header of an if what its condition does not use"
		case assigns && first.Tok != token.DEFINE:
			return "assigns in the header of an if to a variable of the lines around it"
		}
	case *ast.ForStmt:
		if n.Init != nil && n.Post == nil {
			return "is a for with a first statement and no last one"
		}
	case *ast.AssignStmt:
		if len(n.Rhs) >= 4 {
			return fmt.Sprintf("assigns %d values at once", len(n.Rhs))
		}
	}
	return ""
}

// usesAny reports whether an expression uses one of these, by the names in them.
func usesAny(expression ast.Expr, assigned []ast.Expr) (used bool) {
	names := map[string]bool{}
	for _, a := range assigned {
		ast.Inspect(a, func(node ast.Node) bool {
			if id, ok := node.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	ast.Inspect(expression, func(node ast.Node) bool {
		if id, ok := node.(*ast.Ident); ok && names[id.Name] {
			used = true
		}
		return true
	})
	return used
}
