package tocsin_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No exported function, method or field has an untyped value in it: constraints of type parameters apart, and the parameters of
// SQL statements, which database libraries take as ...any.
func TestPublicSurfaceIsTyped(t *testing.T) {
	for _, folder := range []string{".", "../receiver", "../tocsintest"} {
		names, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatal(folder, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.FuncDecl:
					if node.Name.IsExported() {
						checkTyped(t, name, node.Name.Name, node.Type.Params)
						checkTyped(t, name, node.Name.Name, node.Type.Results)
					}
					return false
				case *ast.TypeSpec:
					if described, ok := node.Type.(*ast.StructType); ok && node.Name.IsExported() {
						checkTyped(t, name, node.Name.Name, described.Fields)
					}
					return false
				}
				return true
			})
		}
	}
}

func checkTyped(t *testing.T, file, name string, fields *ast.FieldList) {
	if fields == nil {
		return
	}
	for _, field := range fields.List {
		ast.Inspect(field.Type, func(node ast.Node) bool {
			if _, variadic := node.(*ast.Ellipsis); variadic {
				return false
			}
			if named, ok := node.(*ast.Ident); ok && named.Name == "any" {
				t.Errorf("%s: %s has an any", file, name)
			}
			if described, ok := node.(*ast.InterfaceType); ok && len(described.Methods.List) == 0 {
				t.Errorf("%s: %s has an interface{}", file, name)
			}
			return true
		})
	}
}
