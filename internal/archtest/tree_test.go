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

// topLevel is all that may lie at the top, beside names with a dot.
var topLevel = []string{
	"functions", "internal", "infra", "events", "template.yaml", "samconfig.toml", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
}

// vague are names that say nothing about what is inside.
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

// isExample tells whether the file is of an example, which is a repository of its own with its own words.
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

// namesPackages are where the framework's packages are used, which are called what they are called: programs that drive a server through the client packages, the
// runtimes, agents, what builds and tests those or compares them with the framework's own servers, and the list of complaints, which names the trackers that they stand in.
var namesPackages = regexp.MustCompile(`^(internal/e2e/testdata/(sdk|devserver|cli)/|infra/runtimes/(python|node)/|infra/examples/(python|node)-|internal/build/(local/runtime|docker/images)_test\.go$|internal/e2e/(agents|devserver)_test\.go$|internal/agentserver/COMPLAINTS\.md$)`)

// forbidden are texts that no file may contain. They are written in two parts here, so that this file does not.
var forbidden = map[string]*regexp.Regexp{
	"a path of one machine": regexp.MustCompile(`(^|[^\w.$}])/(wo` + `rk|ro` + `ot|fa` + `rm)/`),
	"the host of a package registry": regexp.MustCompile(
		`proxy\.gol` + `ang\.org|sum\.gol` + `ang\.org|registry\.npm` + `js\.org|files\.python` + `hosted\.org|repo1?\.ma` + `ven`),
	brand: regexp.MustCompile(`(?i)lang` + `graph|lang` + `chain|lang` + `smith`),
}

func TestForbiddenTexts(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.name == "go.mod" || f.name == "go.sum" {
			continue // modules that tests use are called what they are called
		}
		for what, pattern := range forbidden {
			if what == brand && namesPackages.MatchString(f.name) {
				continue
			}
			if found := pattern.FindStringIndex(f.text); found != nil {
				t.Errorf("%s:%d contains %s: %q", f.name, 1+strings.Count(f.text[:found[0]], "\n"), what, f.text[found[0]:found[1]])
			}
		}
	}
}
