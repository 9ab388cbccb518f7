//go:build sdk

package runtimes

import (
	"os"
	"os/exec"
	"testing"
)

// TestRuntimesFillSilence runs the tests of the runtimes that need no package, which check that a
// silent agent says each 15 s that it is there. `make test-runtimes` runs all their tests.
func TestRuntimesFillSilence(t *testing.T) {
	t.Parallel()
	for program, args := range map[string][]string{
		"python3": {"-B", "python/tests/test_bridge.py"},
		"node":    {"--test", "node/test/outlet.test.mjs"},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Env = append(os.Environ(), "RUNTIME_DIR=node")
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}
