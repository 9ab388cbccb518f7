package archtest_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// keyText matches the text of a storage key: a kind before an id.
var keyText = regexp.MustCompile(`(^|[#/"])[A-Z]+#`)

// keyed may contain the text of keys: package keys builds them, the seam and its adapters pass
// them on.
var keyed = []string{"internal/record/keys/", "internal/seam/table/"}

func TestOnlyKeysBuildsKeys(t *testing.T) {
	t.Parallel()
	eachNode(t, func(f file, node ast.Node) {
		if f.isTest() || slices.ContainsFunc(keyed, func(dir string) bool { return strings.HasPrefix(f.name, dir) }) {
			return
		}
		switch n := node.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING && keyText.MatchString(n.Value) {
				t.Errorf("%s: %s is the text of a key, which package keys builds", f.at(n), n.Value)
			}
		case *ast.CompositeLit:
			if isSelector(n.Type, "table", "Key") && len(n.Elts) > 0 {
				t.Errorf("%s: a key is put together, which package keys does", f.at(n))
			}
		}
	})
}

// In a bubble of synctest, a sleep takes no time and waits until all other goroutines block.
func TestTestsDoNotSleep(t *testing.T) {
	t.Parallel()
	eachNode(t, func(f file, node ast.Node) {
		if call, ok := node.(*ast.CallExpr); ok && f.isTest() && isSelector(call.Fun, "time", "Sleep") && !f.imports("testing/synctest") {
			t.Errorf("%s: wait for a condition instead of a sleep", f.at(call))
		}
	})
}

func TestTestsAreNotSkipped(t *testing.T) {
	t.Parallel()
	eachNode(t, func(f file, node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok || !f.isTest() {
			return
		}
		for _, name := range []string{"Skip", "Skipf", "SkipNow"} {
			if isSelector(call.Fun, "t", name) || isSelector(call.Fun, "b", name) || isSelector(call.Fun, "tb", name) {
				t.Errorf("%s: a skipped test proves nothing", f.at(call))
			}
		}
	})
}

// eachNode visits the syntax of all handwritten Go files.
func eachNode(t *testing.T, visit func(file, ast.Node)) {
	t.Helper()
	for _, f := range files(t) {
		if f.syntax == nil || f.isGenerated() {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if node != nil {
				visit(f, node)
			}
			return true
		})
	}
}

// isSelector reports whether an expression is name.member.
func isSelector(expression ast.Expr, name, member string) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != member {
		return false
	}
	identifier, ok := selector.X.(*ast.Ident)
	return ok && identifier.Name == name
}

// commentColumns is how wide a line may be that contains only a comment; a tab counts four.
const commentColumns = 100

// TestCommentsAreNarrow keeps comments readable beside the code, except in generated files.
func TestCommentsAreNarrow(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.syntax == nil || f.isGenerated() {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if !strings.HasPrefix(strings.TrimLeft(line, "\t "), "//") {
				continue
			}
			if columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); columns > commentColumns {
				t.Errorf("%s:%d: the comment has %d columns, want %d at most", f.name, i+1, columns, commentColumns)
			}
		}
	}
}
