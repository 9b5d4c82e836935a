// Command reference prints the API reference of the module's packages as a Markdown page of the documentation site.
//
//	go run ./reference >go.md
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strings"
)

const (
	module = "tocsin.dev/go"
	root   = ".."
	// Of the headings in doc comments: below those of packages, types and functions.
	commentHeading = 5
)

func main() {
	log.SetFlags(0)
	out := new(bytes.Buffer)
	out.WriteString("# Go API\n\nThe packages of the module `" + module + "`, as `go doc` shows them.\n")
	for _, name := range []string{"tocsin", "receiver", "tocsintest"} {
		p, err := load(name)
		if err != nil {
			log.Fatal(err)
		}
		p.print(out)
	}
	if _, err := os.Stdout.Write(out.Bytes()); err != nil {
		log.Fatal(err)
	}
}

type reference struct {
	*doc.Package
	files *token.FileSet
}

func load(name string) (*reference, error) {
	paths, err := filepath.Glob(filepath.Join(root, name, "*.go"))
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	p, err := doc.NewFromFiles(files, parsed, module+"/"+name)
	return &reference{p, files}, err
}

func (r *reference) print(out *bytes.Buffer) {
	fmt.Fprintf(out, "\n## Package %s { #%s }\n\n```go\nimport \"%s\"\n```\n\n", r.Name, r.Name, r.ImportPath)
	r.prose(out, r.Doc)
	r.values(out, "Constants", r.Consts)
	r.values(out, "Variables", r.Vars)
	r.funcs(out, "###", r.Funcs)
	for _, t := range r.Types {
		fmt.Fprintf(out, "\n### type %s { #%s.%s }\n\n", t.Name, r.Name, t.Name)
		r.code(out, t.Decl)
		r.prose(out, t.Doc)
		r.values(out, "", t.Consts)
		r.values(out, "", t.Vars)
		r.funcs(out, "####", t.Funcs)
		r.funcs(out, "####", t.Methods)
	}
}

func (r *reference) values(out *bytes.Buffer, title string, values []*doc.Value) {
	if title != "" && len(values) > 0 {
		fmt.Fprintf(out, "\n### %s of %s\n\n", title, r.Name)
	}
	for _, value := range values {
		r.code(out, value.Decl)
		r.prose(out, value.Doc)
	}
}

func (r *reference) funcs(out *bytes.Buffer, level string, funcs []*doc.Func) {
	for _, f := range funcs {
		title, anchor := "func "+f.Name, r.Name+"."+f.Name
		if f.Recv != "" {
			receiver := strings.TrimPrefix(f.Recv, "*")
			receiver, _, _ = strings.Cut(receiver, "[")
			title, anchor = "func ("+receiver+") "+f.Name, r.Name+"."+receiver+"."+f.Name
		}
		fmt.Fprintf(out, "\n%s %s { #%s }\n\n", level, title, anchor)
		r.code(out, f.Decl)
		r.prose(out, f.Doc)
	}
}

// code prints a declaration without its doc comment, which follows as prose.
func (r *reference) code(out *bytes.Buffer, declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		d.Doc = nil
	case *ast.GenDecl:
		d.Doc = nil
	}
	out.WriteString("```go\n")
	if err := format.Node(out, r.files, declaration); err != nil {
		log.Fatal(err)
	}
	out.WriteString("\n```\n\n")
}

func (r *reference) prose(out *bytes.Buffer, text string) {
	printer := r.Printer()
	printer.HeadingLevel = commentHeading
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = r.link
	out.Write(printer.Markdown(r.Parser().Parse(text)))
	out.WriteByte('\n')
}

// link leads to a name on this page, or to the documentation of the standard library.
func (r *reference) link(to *comment.DocLink) string {
	pkg := r.Name
	if to.ImportPath != "" {
		found, ours := strings.CutPrefix(to.ImportPath, module+"/")
		if !ours {
			return to.DefaultURL("https://pkg.go.dev/")
		}
		pkg = found
	}
	anchor := "#" + pkg
	for _, part := range []string{to.Recv, to.Name} {
		if part != "" {
			anchor += "." + strings.TrimPrefix(part, "*")
		}
	}
	return anchor
}
