package archtest_test

import (
	"go/ast"
	"go/token"
	"path"
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

// commentColumns is how wide a line may be that contains a comment or the prose of a Markdown file;
// a tab counts four.
const commentColumns = 100

// proseMarks matches what precedes the first word of a line of prose or of a comment.
var proseMarks = regexp.MustCompile(`^\s*(//|/\*+|#+|[-*>]|"""|\d+\.)?\s*`)

// TestCommentsAreNarrow keeps comments readable beside the code, and Markdown files readable as
// text, except in generated files. A line without a space, such as a link, cannot be broken.
func TestCommentsAreNarrow(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		// The programs that write these files write long lines.
		if f.isGenerated() || path.Base(f.name) == "COST.md" {
			continue
		}
		isProse := f.proseLines()
		isTrailing := f.trailingComments()
		number := 0
		for line := range strings.SplitSeq(f.text, "\n") {
			number++
			if !isTrailing[number] && (!isProse(line) || !strings.Contains(line[len(proseMarks.FindString(line)):], " ")) {
				continue
			}
			if columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); columns > commentColumns {
				t.Errorf("%s:%d: the line has %d columns, want %d at most", f.name, number, columns, commentColumns)
			}
		}
	}
}

// proseLines returns a function that reports of each line of the file, in their order, whether it
// contains only a comment, or the prose of a Markdown file.
func (f file) proseLines() func(line string) bool {
	switch path.Ext(f.name) {
	case ".go":
		return func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, "\t "), "//") }
	case ".md":
		return markdownProse()
	}
	return func(line string) bool {
		line = strings.TrimLeft(line, "\t ")
		// A type behind a tag, such as @param, is in one line.
		return !strings.HasPrefix(line, "* @") &&
			slices.ContainsFunc([]string{"# ", "// ", "/*", "* ", `"""`}, func(mark string) bool { return strings.HasPrefix(line, mark) })
	}
}

// trailingComments returns the numbers of the lines of a Go file that have a comment behind code,
// except directives to linters, which act on their own line.
func (f file) trailingComments() map[int]bool {
	lines := map[int]bool{}
	if f.syntax == nil {
		return lines
	}
	text := strings.Split(f.text, "\n")
	for _, group := range f.syntax.Comments {
		at := f.fset.Position(group.Pos())
		if strings.TrimSpace(text[at.Line-1][:at.Column-1]) != "" && !strings.HasPrefix(group.List[0].Text, "//nolint:") {
			lines[at.Line] = true
		}
	}
	return lines
}

// markdownProse reports of each line whether it is prose: neither code, which stands between fences
// or is indented by four, nor a row of a table.
func markdownProse() func(line string) bool {
	isCode := false
	return func(line string) bool {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "```") {
			isCode = !isCode
		}
		return !isCode && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(text, "|")
	}
}
