package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/spf13/cobra"
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
		root := &cobra.Command{Use: "slipway"}
		root.AddCommand(Commands()...)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs([]string{cobra.ShellCompNoDescRequestCmd, "deployments", command, "--url", server.URL, "--key", "key", ""})
		check.Must(t, root.ExecuteContext(t.Context()))
		if got, _, _ := bytes.Cut(out.Bytes(), []byte("Completion ended")); string(got) != want {
			t.Errorf("deployments %s: got %q, want %q", command, got, want)
		}
	}
}
