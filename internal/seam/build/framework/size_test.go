package framework_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

// TestSettingsHaveALimit names the key that takes the most.
func TestSettingsHaveALimit(t *testing.T) {
	t.Parallel()
	read := func(header, path int) error {
		_, err := framework.Read(tree(t, map[string]string{"pyproject.toml": "", "framework.json": fmt.Sprintf(
			`{"graphs": {"a": "a.py:a"}, "dependencies": ["."], "webhooks": {"headers": {"X": %q}}, "auth": {"path": %q}}`,
			strings.Repeat("x", header), "./"+strings.Repeat("a", path)+".py:auth")}), "")
		return err
	}
	if err := read(15<<10, 10); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{"webhooks": read(17<<10, 10), "auth": read(10, 17<<10)} {
		if err == nil || !strings.Contains(err.Error(), "- "+name+": the settings of auth, checkpointer, http, store, ui and webhooks take 17") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
