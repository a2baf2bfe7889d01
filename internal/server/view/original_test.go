package view

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sources are the files of the server without its tests and this package.
func sources(t *testing.T) (all []*ast.File) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "view" {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		all = append(all, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Only those that write, or were allowed to, see a job as it is.
func TestOriginal_IsForThoseThatWrite(t *testing.T) {
	allowed := map[string][]string{
		"Original": {"resendOnce", "replay", "replayEdited"},
		"Reveal":   {"Reveal"},
		"Rewrite":  {"Edit"},
	}
	found := 0
	for _, file := range sources(t) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.SelectorExpr); ok && x.Sel.Name == "View" {
					if who, limited := allowed[s.Sel.Name]; limited {
						found++
						if !slices.Contains(who, f.Name.Name) {
							t.Errorf("%s uses View.%s", f.Name.Name, s.Sel.Name)
						}
					}
				}
				return true
			})
		}
	}
	if found < 5 {
		t.Errorf("only %d uses were found", found)
	}
}
