package standalone_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheLogSaysWhatIsNotLimited checks that the log says it once, if the system cannot limit
// agents.
func TestTheLogSaysWhatIsNotLimited(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	server, err := standalone.Open(standalone.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&said, nil))})
	check.Must(t, err)
	check.Must(t, server.Close(t.Context()))
	want := 0
	if child.CanLimit() != nil {
		want = 1
	}
	if got := strings.Count(said.String(), "cannot bound the processors, memory and processes"); got != want {
		t.Errorf("it is said %d times, want %d:\n%s", got, want, &said)
	}
}
