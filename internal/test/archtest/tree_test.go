package archtest_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxLines     = 500
	maxMainLines = 60
)

// topLevel lists the names that are allowed at the top, besides names with a dot.
var topLevel = []string{
	"functions", "internal", "infra", "events", "template.yaml", "samconfig.toml", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
}

// vague are names that say nothing about the content of a package.
var vague = []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "models"}

func TestTopLevel(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if first, _, _ := strings.Cut(f.name, "/"); !strings.HasPrefix(first, ".") && !slices.Contains(topLevel, first) {
			t.Errorf("%s: the top level is fixed", f.name)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		for part := range strings.SplitSeq(strings.TrimSuffix(f.name, path.Ext(f.name)), "/") {
			if slices.Contains(vague, strings.TrimSuffix(part, "_test")) && !isExample(f.name) {
				t.Errorf("%s: name it by what is inside", f.name)
			}
		}
	}
}

// stories are the folders whose tests are named by what they tell: they test many packages.
var stories = []string{"internal/test/e2e", "internal/test/archtest", "internal/seam/table/dynamo/cost"}

// TestTestsStandBesideWhatTheyTest checks that the name of a file of tests begins with the name of
// a file that it tests, or with that of the package or "main" if it tests the whole package.
func TestTestsStandBesideWhatTheyTest(t *testing.T) {
	t.Parallel()
	tested := map[string][]string{}
	for _, f := range files(t) {
		if f.syntax != nil && !f.isTest() {
			dir, base := path.Split(f.name)
			tested[dir] = append(tested[dir], strings.TrimSuffix(base, ".go"))
		}
	}
	for _, f := range files(t) {
		dir, base := path.Split(f.name)
		if !f.isTest() || slices.Contains(stories, path.Clean(dir)) {
			continue
		}
		names := append([]string{path.Base(dir), "main", "export"}, tested[dir]...)
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(base, name+"_") }) {
			t.Errorf("%s: begin its name with that of the file that it tests", f.name)
		}
	}
}

// isExample reports whether the file belongs to an example, which is a separate repository
// with its own terms.
func isExample(name string) bool { return strings.HasPrefix(name, "infra/examples/") }

func TestLength(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		lines := strings.Count(f.text, "\n")
		switch {
		case f.syntax == nil || f.isGenerated():
		case lines > maxLines:
			t.Errorf("%s has %d lines: is there a second file in it?", f.name, lines)
		case strings.HasPrefix(f.name, "functions/") && path.Base(f.name) == "main.go" && lines > maxMainLines:
			t.Errorf("%s has %d lines: a main puts parts together and no more", f.name, lines)
		}
	}
}

const brand = "the public service's brand"

// namesPackages matches the files that use the framework's packages, whose names are fixed:
// programs that drive a server through the client packages, the runtimes, agents (also the
// agents that `slipway new` writes), files that build, test or measure these or compare them with
// the framework's own servers, the list of regressions, which names the trackers that contain them,
// and the public spellings of names, which are data.
var namesPackages = regexp.MustCompile(`^(internal/test/e2e/testdata/(sdk|devserver|cli|shapes|application|components|durability|encryption|inbox|index|repositories)/|infra/runtimes/((python|node)/|COMPATIBILITY\.md$)|infra/examples/((python|node)-|clients/|chat-react/)|internal/cmd/cli/starter/(python|javascript)/|internal/cmd/bench/(nothing/|overhead\.go$)|internal/seam/build/(local/runtime|docker/images)_test\.go$|internal/test/e2e/(agents|devserver|repositories|shapes)_test\.go$|internal/api/agentserver/REGRESSIONS\.md$|internal/base/publicname/names\.json$)`)

// forbidden are texts, in lower case, that no file may contain. They are written in two parts here,
// so that this file does not.
var forbidden = map[string][]string{
	"a path of one machine":          {"/wo" + "rk/", "/ro" + "ot/", "/fa" + "rm/"},
	"the host of a package registry": {"proxy.gol" + "ang.org", "sum.gol" + "ang.org", "registry.npm" + "js.org", "files.python" + "hosted.org", "repo.ma" + "ven", "repo1.ma" + "ven"},
	brand:                            {"lang" + "graph", "lang" + "chain", "lang" + "smith"},
}

// within matches the text before a machine path that is only a part of another path.
var within = regexp.MustCompile(`[\w.$}]$`)

func TestForbiddenTexts(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.name == "go.mod" || f.name == "go.sum" {
			continue // the names of modules that tests use are fixed
		}
		text := strings.ToLower(f.text)
		for what, words := range forbidden {
			if what == brand && namesPackages.MatchString(f.name) {
				continue
			}
			for _, word := range words {
				if at := find(text, word); at >= 0 {
					t.Errorf("%s:%d contains %s: %q", f.name, 1+strings.Count(text[:at], "\n"), what, word)
				}
			}
		}
	}
}

// find returns the position at which a word first occurs in a text, or -1 if it does not
// occur. A path counts only where it begins.
func find(text, word string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return -1
		}
		at += from
		if word[0] != '/' || at == 0 || !within.MatchString(text[at-1:at]) {
			return at
		}
		from = at + 1
	}
}
