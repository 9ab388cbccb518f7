package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// ofStarter is a test in the package of the starter in Go: the agent beats again and again beside
// what it says, and neither cuts the other.
const ofStarter = `package main

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestBeat(t *testing.T) {
	if heartbeat != 15*time.Second {
		t.Errorf("the agent is silent for %s", heartbeat)
	}
	heartbeat = time.Millisecond
	os.Setenv("SLIPWAY_INVOKE_TOKEN", "token")
	r := httptest.NewRequest("POST", "/invocations", strings.NewReader(` + "`" + `{"state": {"values": {"messages": [{"content": "hello"}]}}}` + "`" + `))
	r.Header.Set("Authorization", "Bearer token")
	w := httptest.NewRecorder()
	invoke(w, r)
	beats, said := 0, 0
	for _, block := range strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
		switch {
		case block == ": heartbeat":
			beats++
		case strings.HasPrefix(block, "event: "):
			said++
		default:
			t.Errorf("got %q", block)
		}
	}
	if beats < 3 || said < 3 {
		t.Errorf("it beats %d times and says %d events", beats, said)
	}
}
`

// TestTheStarterInGoFillsSilence tests what `slipway new` makes.
func TestTheStarterInGoFillsSilence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, writeStarter(dir, "go"))
	check.Must(t, os.WriteFile(filepath.Join(dir, "beat_test.go"), []byte(ofStarter), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is built without the race detector
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
