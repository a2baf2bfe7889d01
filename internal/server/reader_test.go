package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store"
)

// telling are the types that hold what a job brought along or what was said of
// its failure.
func telling(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	for _, is := range []any{job.Job{}, job.DeadLetter{}, job.Attempt{}, failures.Group{}, operation.Item{}, audit.Entry{}, operation.Operation{}} {
		if t == reflect.TypeOf(is) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Map:
		return telling(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if telling(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// Every method of the store that returns what may have to be hidden is the
// reader's own.
func TestReader_RedactsWhateverTheStoreReturns(t *testing.T) {
	engines := []string{"Exchange", "Work"} // what workers get is the real thing
	of, own := reflect.TypeOf(&store.Store{}), reflect.TypeOf(reader{})
	looked := 0
	for i := range of.NumMethod() {
		m := of.Method(i)
		tells := m.Name == "Problems"
		for k := range m.Type.NumOut() {
			tells = tells || telling(m.Type.Out(k), map[reflect.Type]bool{})
		}
		if !tells || slices.Contains(engines, m.Name) {
			continue
		}
		looked++
		mine, _ := own.MethodByName(m.Name)
		if file, _ := runtime.FuncForPC(mine.Func.Pointer()).FileLine(mine.Func.Pointer()); !strings.HasSuffix(file, "reader.go") {
			t.Errorf("Store.%s returns what may have to be hidden; give the reader a method of this name", m.Name)
		}
	}
	if looked < 15 {
		t.Errorf("only %d methods were looked at", looked)
	}
}

// sources are the files of this package without its tests and the reader.
func sources(t *testing.T) (all []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "reader.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file)
	}
	return all
}

// Only those that write, or were allowed to, see a job as it is; nothing comes
// past the reader.
func TestReader_IsTheOnlyWay(t *testing.T) {
	allowed := map[string][]string{
		"original": {"forwardOnce", "replayJob", "redoForm", "reveal"},
		"Exchange": {},
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
				if who, limited := allowed[s.Sel.Name]; limited {
					found++
					if !slices.Contains(who, f.Name.Name) {
						t.Errorf("%s uses %s", f.Name.Name, s.Sel.Name)
					}
				}
				if inner, ok := s.X.(*ast.SelectorExpr); ok && inner.Sel.Name == "Store" && s.Sel.Name == "Store" || ok && inner.Sel.Name == "Options" && s.Sel.Name == "Store" {
					t.Errorf("%s comes past the reader", f.Name.Name)
				}
				return true
			})
		}
	}
	if found < 3 {
		t.Errorf("only %d uses were found", found)
	}
}
