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

	"github.com/google/go-cmp/cmp"
	"github.com/slipway-run/slipway/internal/test/check"
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
	check.Must(t, err)
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

// secondsCell is where a row has the seconds, counted from its end.
const secondsCell = 3

// findings returns the cells of a row without the seconds, which no run repeats.
func findings(row string) []string {
	cells := strings.Split(row, "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if at := len(cells) - secondsCell; at >= 0 {
		cells = slices.Delete(cells, at, at+1)
	}
	return cells
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

// compare checks that the table says of a repository what was found, and why it came no further.
func (a *table) compare(t *testing.T, r result) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(findings(a.rows[r.title]), findings(r.row())); diff != "" {
		t.Errorf("it is not as infra/runtimes/COMPATIBILITY.md says (-table +found):\n%s", diff)
	}
}
