//go:build repositories

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// table is infra/runtimes/COMPATIBILITY.md: words, and one table with a row for each repository.
type table struct {
	mu sync.Mutex
	// before holds the lines up to the first row, rows the rows by the titles of their
	// repositories.
	before []string
	rows   map[string]string
}

func tableFile() string { return filepath.Join(built.root, "infra", "runtimes", "COMPATIBILITY.md") }

func readTable(t *testing.T) *table {
	t.Helper()
	text, err := os.ReadFile(tableFile())
	if err != nil {
		t.Fatal(err)
	}
	all := &table{rows: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(line, "| ["); ok {
			title, _, _ = strings.Cut(title, "]")
			all.rows[title] = line
		} else {
			all.before = append(all.before, line)
		}
	}
	return all
}

// row returns the row of a repository.
func (r result) row() string {
	return fmt.Sprintf("| [%s](%s/tree/%s) | %s | %s | %s | %s | %s | %s | %s | %s | %s |",
		r.title, r.url, r.commit, r.commit[:10], r.built, r.deployed, r.described, r.ran, r.interrupted, r.resumed, r.seconds, r.why)
}

// verdicts returns the cells of a row without the seconds and the cause, which no run repeats.
func verdicts(row string) []string {
	cells := strings.Split(row, "|")
	return slices.Collect(func(yield func(string) bool) {
		for _, cell := range cells[1:max(1, len(cells)-3)] {
			if !yield(strings.TrimSpace(cell)) {
				return
			}
		}
	})
}

// put writes the row of a repository into the table; rows of repositories that the list does not
// have any more are removed.
func (a *table) put(t *testing.T, r result) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows[r.title] = r.row()
	lines := slices.Clone(a.before)
	for _, p := range publicRepositories(t) {
		if row := a.rows[p.title()]; row != "" {
			lines = append(lines, row)
		}
	}
	if err := os.WriteFile(tableFile(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Error(err)
	}
}

// compare checks that the table says of a repository what was found.
func (a *table) compare(t *testing.T, r result) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if got, want := verdicts(r.row()), verdicts(a.rows[r.title]); !slices.Equal(got, want) {
		t.Errorf("it is not as infra/runtimes/COMPATIBILITY.md says:\n%v, there\n%v\n%s", got, want, r.why)
	}
}
