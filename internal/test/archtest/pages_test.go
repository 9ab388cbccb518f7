package archtest_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

var (
	links    = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	quoted   = regexp.MustCompile("`[^`]*`")
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// unslugged are the signs of a heading that its anchor does not have.
	unslugged = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksLeadSomewhere checks the links of Markdown files to files of the tree and to their
// headings.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	anchors := map[string][]string{}
	for _, f := range files(t) {
		for _, heading := range headings.FindAllStringSubmatch(f.text, -1) {
			if path.Ext(f.name) == ".md" {
				slug := strings.ReplaceAll(unslugged.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-")
				anchors[f.name] = append(anchors[f.name], slug)
			}
		}
	}
	for _, f := range files(t) {
		if path.Ext(f.name) != ".md" {
			continue
		}
		isProse := markdownProse()
		for line := range strings.SplitSeq(f.text, "\n") {
			if !isProse(line) && !strings.HasPrefix(line, "|") {
				continue
			}
			for _, link := range links.FindAllStringSubmatch(quoted.ReplaceAllString(line, ""), -1) {
				if strings.Contains(link[1], ":") {
					continue
				}
				target := f.name
				if link[1] != "" {
					target = path.Join(path.Dir(f.name), link[1])
				}
				if _, err := os.Stat(filepath.Join(top, filepath.FromSlash(target))); err != nil {
					t.Errorf("%s: there is no %s", f.name, target)
				} else if link[2] != "" && !slices.Contains(anchors[target], link[2]) {
					t.Errorf("%s: %s has no heading %s", f.name, target, link[2])
				}
			}
		}
	}
}

// TestScaleIsComputedFromCost checks that the table of loads has what COST.md measures of a run
// with its stream.
func TestScaleIsComputedFromCost(t *testing.T) {
	t.Parallel()
	cost, scale := page(t, "internal/seam/table/dynamo/COST.md"), page(t, "infra/scale.md")
	sums := regexp.MustCompile(`\n\| together( \| about \d+){7} \|\n`).FindString(cost)
	numbers := regexp.MustCompile(`\d+`).FindAllString(sums, -1)
	if len(numbers) != 7 {
		t.Fatalf("COST.md has no sums of a run with its stream: %q", sums)
	}
	unit := func(column int) int {
		units, err := strconv.Atoi(numbers[column])
		check.Must(t, err)
		return units
	}
	for name, units := range map[string]int{
		"table and its indexes, write units each second": unit(2) + unit(3) + unit(6),
		"read units each second":                         unit(1) + unit(5),
	} {
		row := "\n| " + name
		for _, runs := range []int{10, 100, 1000} {
			row += " | " + thousands(units*runs)
		}
		if !strings.Contains(scale, row+" |\n") {
			t.Errorf("infra/scale.md lacks the row%s |", row)
		}
	}
}

// page returns the text of a file.
func page(t *testing.T, name string) string {
	t.Helper()
	all := files(t)
	i := slices.IndexFunc(all, func(f file) bool { return f.name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[i].text
}

// thousands returns a number of at most six digits with a comma before its last three.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	if len(digits) < 4 {
		return digits
	}
	return digits[:len(digits)-3] + "," + digits[len(digits)-3:]
}
