package standalone

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestACrashOfTheServerBefore is known to the next server only, and its report is kept.
func TestACrashOfTheServerBefore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	check.Must(t, os.Chmod(data, 0o700))
	check.Must(t, os.WriteFile(filepath.Join(data, crashFile), []byte("fatal error"), 0o600))
	for _, want := range []bool{true, false} {
		var log bytes.Buffer
		server, err := Open(Config{Listen: "127.0.0.1:0", Data: data, Log: slog.New(slog.NewTextHandler(&log, nil))})
		check.Must(t, err)
		check.Must(t, server.Close(context.Background()))
		if logged := strings.Contains(log.String(), "the previous server crashed"); server.crashed != want || logged != want {
			t.Errorf("got crashed %v and logged %v, want %v", server.crashed, logged, want)
		}
	}
	if kept, err := os.ReadFile(filepath.Join(data, "crash.last")); err != nil || string(kept) != "fatal error" {
		t.Errorf("kept is %q (%v)", kept, err)
	}
}
