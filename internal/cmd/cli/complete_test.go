package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestNamesOfDeploymentsAreOffered checks that a shell offers names of deployments to the commands
// that take such a name, and to no other command.
func TestNamesOfDeploymentsAreOffered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"resources":[{"name":"weather"}]}`)
	}))
	t.Cleanup(server.Close)
	for command, want := range map[string]string{"show": "weather\n:4\n", "list": ":4\n"} {
		if got := completed(t, "deployments", command, "--url", server.URL, "--key", "key", ""); got != want {
			t.Errorf("deployments %s: got %q, want %q", command, got, want)
		}
	}
}

// TestValuesOfFlagsAreOffered checks that a shell offers the values of a flag that takes some words
// only.
func TestValuesOfFlagsAreOffered(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--kind": "build\nruntime\n:4\n", "--level": "debug\ninfo\nwarning\nerror\ncritical\n:4\n"} {
		if got := completed(t, "logs", "weather", flag, ""); got != want {
			t.Errorf("logs %s: got %q, want %q", flag, got, want)
		}
	}
}

// completed returns what a shell offers for the last word of a command line.
func completed(t *testing.T, words ...string) string {
	t.Helper()
	root := &cobra.Command{Use: "slipway"}
	root.AddCommand(Commands()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, words...))
	check.Must(t, root.ExecuteContext(t.Context()))
	got, _, _ := strings.Cut(out.String(), "Completion ended")
	return got
}
