package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestARevisionThatHasNotFailedIsExplained names a revision that serves.
func TestARevisionThatHasNotFailedIsExplained(t *testing.T) {
	t.Parallel()
	const of, id = "0197a000-0000-7000-8000-000000000001", "0197a000-0000-7000-8000-000000000002"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/deployments/"+of, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id":%q,"name":"weather","status":"READY","active_revision_id":%q}`, of, id)
	})
	at := "/v2/deployments/" + of + "/revisions/" + id
	mux.HandleFunc("GET "+at, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id":%q,"status":"DEPLOYED","phase_timestamps":{"DEPLOYED":"2026-03-01T12:00:00Z"}}`, id)
	})
	mux.HandleFunc("GET "+at+"/explanation", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, `{"detail":"Revision ID %s has not failed: its status is DEPLOYED."}`, id)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	root := &cobra.Command{Use: "slipway"}
	root.AddCommand(Commands()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"explain", of, id, "--url", server.URL, "--key", "key"})
	check.Must(t, root.ExecuteContext(t.Context()))
	want := "The revision has not failed.\nRevision " + id + " is DEPLOYED; revision " + id + " serves.\n    2026-03-01T12:00:00Z  DEPLOYED\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
