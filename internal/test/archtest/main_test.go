package archtest_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// top is the root of the source tree.
var top = filepath.Join("..", "..", "..")

const module = "github.com/slipway-run/slipway/"

// pkg is a package of the module.
type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
	// path is the import path within the module; own are the imports within the module, and
	// foreign are all other imports.
	path         string
	own, foreign []string
}

var listed = sync.OnceValues(list)

// packages lists the packages of the module, with their imports outside their tests.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	check.Must(t, err)
	return all
}

func list() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "./...")
	cmd.Dir, cmd.Stderr = top, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []pkg
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		p.path = strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range p.Imports {
			if within, ok := strings.CutPrefix(imported, module); ok {
				p.own = append(p.own, within)
			} else {
				p.foreign = append(p.foreign, imported)
			}
		}
		all = append(all, p)
	}
}

// file is a file of the source tree.
type file struct {
	// name is the path within the tree, with slashes.
	name string
	text string
	// syntax is nil unless it is a Go file.
	syntax *ast.File
	fset   *token.FileSet
}

var read = sync.OnceValues(readFiles)

// files reads the tree: the files that git tracks, and the files that it would track if they
// were added.
func files(t *testing.T) []file {
	t.Helper()
	all, err := read()
	check.Must(t, err)
	return all
}

func readFiles() ([]file, error) {
	// The checkout may belong to another user than the user of the test.
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir, cmd.Stderr = top, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []file
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		// Reading the directory makes a file that is added later count as a change, after
		// which go test does not answer from its cache.
		if _, err := os.Stat(filepath.Join(top, filepath.FromSlash(path.Dir(name)))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
		if errors.Is(err, os.ErrNotExist) {
			continue // a deletion that is not yet committed
		}
		if err != nil {
			return nil, err
		}
		f := file{name: name, text: string(text)}
		if path.Ext(name) == ".go" {
			f.fset = token.NewFileSet()
			if f.syntax, err = parser.ParseFile(f.fset, name, text, parser.ParseComments); err != nil {
				return nil, err
			}
		}
		all = append(all, f)
	}
	return all, nil
}

func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

func (f file) isGenerated() bool { return f.syntax != nil && ast.IsGenerated(f.syntax) }

// imports reports whether a Go file imports a package.
func (f file) imports(importPath string) bool {
	for _, spec := range f.syntax.Imports {
		if spec.Path.Value == `"`+importPath+`"` {
			return true
		}
	}
	return false
}

// at returns the position of a node, for a message.
func (f file) at(node ast.Node) string { return f.fset.Position(node.Pos()).String() }
