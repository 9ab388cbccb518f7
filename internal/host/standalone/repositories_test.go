package standalone_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAGitHubAppThatCannotBeUsed checks that a bad App is found when the server starts, without
// showing the content of the file.
func TestAGitHubAppThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":            {`{"client_secret": "hush"`, "is not JSON with app_id"},
		"no key":             {`{"app_id": 1, "slug": "a", "client_id": "b", "client_secret": "hush", "private_key": "hush"}`, "private key of the GitHub App"},
		"secrets of no list": {`{"webhook_secrets": "hush-hush-hush-hush"}`, "the list webhook_secrets"},
		"a short secret":     {`{"webhook_secrets": ["hush"]}`, "it needs 16 at least"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "app.json")
		check.Must(t, os.WriteFile(file, []byte(c.text), 0o600))
		_, err := standalone.Open(standalone.Config{
			Listen: "127.0.0.1:0", Data: filepath.Join(dir, "data"), GitHubApp: file, Log: slog.New(slog.DiscardHandler),
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err := standalone.Open(standalone.Config{
		Listen: "127.0.0.1:0", Data: t.TempDir(), GitHubApp: filepath.Join(t.TempDir(), "missing"), Log: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("without the file: got %v", err)
	}
}
