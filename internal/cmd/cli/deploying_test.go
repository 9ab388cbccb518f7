package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/cmd/output"
)

// TestAFileOfSecretsStaysHere checks that a deployment says which variables of the .env file the
// agent would miss.
func TestAFileOfSecretsStaysHere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("PASSED=1\nKEPT=2\nMISSED=3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kept := range [][]secret{{{Name: "KEPT"}}, {{Name: "KEPT"}, {Name: "MISSED"}}} {
		var said []string
		d := &deploying{
			plan:       plan{deployOptions: deployOptions{dir: dir, dry: true}, values: []secret{{Name: "PASSED"}}},
			deployment: deployment{Secrets: kept},
			show: func(event output.Event) {
				if strings.Contains(event.Text, "is not uploaded") {
					said = append(said, event.Text)
				}
			},
		}
		if _, err := d.revise(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		missed := len(kept) == 1
		if missed != (len(said) == 1) || missed && !strings.Contains(said[0], "has no MISSED;") {
			t.Errorf("with %d secrets: said %q", len(kept), said)
		}
	}
}
