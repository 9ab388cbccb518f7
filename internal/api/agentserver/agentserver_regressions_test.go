package agentserver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// testedIn has the packages that REGRESSIONS.md names: the files with their tests, and the form
// of a test there.
var testedIn = map[string]struct{ files, test string }{
	"agentserver": {"*_test.go", "func %(t *testing.T)"},
	"keeper":      {"*_test.go", "func %(t *testing.T)"},
	"run":         {"../../agent/run/*_test.go", "func %(t *testing.T)"},
	"runner":      {"../../jobs/runner/*_test.go", "func %(t *testing.T)"},
	"e2e":         {"../../test/e2e/*_test.go", "func %(t *testing.T)"},
	"chaos":       {"../../test/e2e/*_test.go", "func %(t *testing.T)"},
	"python":      {"../../../infra/runtimes/python/tests/*.py", "def %("},
	"sdk":         {"../../test/e2e/testdata/sdk/*", " %("},
}

// named finds the names of packages, and the tests behind them.
var named = regexp.MustCompile("`[^`]+`|\\b[a-z0-9]+\\b")

// TestRegressionsNameTheirTests checks that the tests, and the parts of tests, that each row of
// REGRESSIONS.md names exist.
func TestRegressionsNameTheirTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("REGRESSIONS.md")
	check.Must(t, err)
	rows := 0
	for row := range strings.Lines(string(text)) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || cells[3] == " Test " {
			continue
		}
		rows++
		from, found := "", 0
		for _, word := range named.FindAllString(cells[3], -1) {
			if _, ok := testedIn[word]; ok {
				from = word
				continue
			}
			test, quoted := strings.CutPrefix(word, "`")
			if !quoted || !strings.ContainsAny(test[:1], "Tt") && from != "sdk" {
				continue
			}
			found++
			if test = strings.TrimSuffix(test, "`"); !isTested(t, from, test) {
				t.Errorf("%s has no test %q", from, test)
			}
		}
		if found == 0 && !strings.Contains(cells[3], "chaos") {
			t.Errorf("no test shows %s", row)
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows were read", rows)
	}
}

// isTested looks for a test, and for the pieces of text of its part. A name of the SDKs may be
// the name of a script.
func isTested(t *testing.T, from, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.FromSlash(testedIn[from].files))
	check.Must(t, err)
	name, part, _ := strings.Cut(test, "/")
	for _, file := range files {
		text, err := os.ReadFile(file)
		check.Must(t, err)
		if !strings.Contains(string(text), strings.ReplaceAll(testedIn[from].test, "%", name)) && strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) != name {
			continue
		}
		for piece := range strings.SplitSeq(part, "…") {
			if !strings.Contains(string(text), strings.TrimSpace(piece)) {
				t.Errorf("%s has no part %q", name, part)
			}
		}
		return true
	}
	return false
}
