package output_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestActions has an agent whose log looks like a command of the job.
func TestActions(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	summary := filepath.Join(t.TempDir(), "summary.md")
	actions := output.NewActions(output.NewText(io.Discard, &stderr, false, false), &stderr, summary)
	for _, event := range []output.Event{
		{Kind: output.KindStatus, Status: "BUILDING"},
		{Kind: output.KindStatus, Status: "BUILD_FAILED", Text: "after 1.0s BUILDING"},
		{Kind: output.KindLog, Name: "build log", Text: "its last lines", Lines: []string{"::add-mask::planted"}},
		{Kind: output.KindResult, Name: "weather", Status: "failed", Text: "100 % wrong\nnext: this"},
	} {
		actions.Show(event)
	}
	check.Must(t, actions.Close())
	want := `(?s)\n::group::build log\n::stop-commands::([A-Z2-7]+)\n.*    ::add-mask::planted\n::([A-Z2-7]+)::\n::endgroup::\n` +
		`::error title=weather%3A failed::100 %25 wrong%0Anext: this\n$`
	if at := regexp.MustCompile(want).FindStringSubmatch(stderr.String()); at == nil || at[1] != at[2] {
		t.Errorf("got\n%s", stderr.String())
	}
	text, err := os.ReadFile(summary)
	if want := "### weather: failed\n\n    BUILDING\n    BUILD_FAILED, after 1.0s BUILDING\n    100 % wrong\n    next: this\n\n"; err != nil || string(text) != want {
		t.Errorf("the summary is %q (%v)", text, err)
	}
}
