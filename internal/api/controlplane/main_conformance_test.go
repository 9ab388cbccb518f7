package controlplane_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// The interface's rules, and the test that proves each rule, are listed in CONFORMANCE.md. A
// test declares the rules that it proves by calling rule. When all tests have run, the list
// must name every rule of rules and equal the file. `go test ./internal/api/controlplane
// -update` writes the file again.

const conformanceFile = "CONFORMANCE.md"

var update = flag.Bool("update", false, "write "+conformanceFile+" anew")

// proven has the tests of each rule.
var proven = struct {
	sync.Mutex
	tests map[string]map[string]bool
}{tests: map[string]map[string]bool{}}

// rule notes that the test proves a rule.
func rule(t *testing.T, sentence string) {
	t.Helper()
	if !known[sentence] {
		t.Errorf("%q is not among the rules", sentence)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	proven.Lock()
	defer proven.Unlock()
	if proven.tests[sentence] == nil {
		proven.tests[sentence] = map[string]bool{}
	}
	proven.tests[sentence][name] = true
}

// known are the sentences of rules.
var known = func() map[string]bool {
	all := map[string]bool{}
	for _, section := range rules {
		for _, sentence := range section.sentences {
			all[sentence] = true
		}
	}
	return all
}()

// chapter is a part of the interface with its rules.
type chapter struct {
	title     string
	sentences []string
}

// conformance is the text of CONFORMANCE.md, and the rules that no test proves.
func conformance() (text string, unproven []string) {
	var b strings.Builder
	b.WriteString("# Conformance of the control plane\n\n" +
		"Each rule of the interface, and the tests that prove it by HTTP requests. Written by\n" +
		"`go test ./internal/api/controlplane -update`; the tests fail when a rule has no test, or when\n" +
		"this file is not current.\n")
	for _, section := range rules {
		fmt.Fprintf(&b, "\n## %s\n\n| Rule | Proven by |\n|---|---|\n", section.title)
		for _, sentence := range section.sentences {
			names := slices.Sorted(maps.Keys(proven.tests[sentence]))
			if len(names) == 0 {
				unproven = append(unproven, sentence)
			}
			fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(sentence, "|", `\|`), strings.Join(names, ", "))
		}
	}
	return b.String(), unproven
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	// A run of some of the tests proves only some of the rules.
	if whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""; code == 0 && whole {
		code = checkConformance()
	}
	os.Exit(code)
}

var namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")

// TestRequestsNameTheirTests makes sure that REQUESTS.md names only tests that exist.
func TestRequestsNameTheirTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("REQUESTS.md")
	check.Must(t, err)
	rows := 0
	for row := range strings.Lines(string(text)) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| #") {
			continue
		}
		rows++
		named := namedTest.FindAllStringSubmatch(row, -1)
		if len(named) == 0 {
			t.Errorf("no test shows %s", row)
		}
		for _, test := range named {
			if !hasTest(t, filepath.Join("..", "..", "*", filepath.FromSlash(test[1])), test[2]) {
				t.Errorf("no package %s has %s", test[1], test[2])
			}
		}
	}
	if rows != 20 {
		t.Errorf("there are %d rows, want 20", rows)
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	check.Must(t, err)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		check.Must(t, err)
		return strings.Contains(string(text), "func "+name+"(t *testing.T)")
	})
}

func checkConformance() int {
	text, unproven := conformance()
	if len(unproven) > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: no test proves these rules:\n%s\n", strings.Join(unproven, "\n"))
		return 1
	}
	if *update {
		if err := os.WriteFile(conformanceFile, []byte(text), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			return 1
		}
	}
	written, err := os.ReadFile(conformanceFile)
	if err != nil || string(written) != text {
		fmt.Fprintf(os.Stderr, "FAIL: %s is not current (%v); write it anew with -update\n", conformanceFile, err)
		return 1
	}
	return 0
}
