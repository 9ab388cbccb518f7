package files_test

import (
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/registry/registrytest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackByReadingManifests reads manifests as often as it can: the server does not run out of
// files.
func TestAttackByReadingManifests(t *testing.T) { //nolint:paralleltest // it counts the files of this process
	m := newMachine(t)
	grant := m.grant(t, registrytest.NewRef())
	digest := m.push(t, grant, "v1")
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would close the files
	openFiles := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		check.Must(t, err)
		return len(files)
	}
	read := func(reference string) {
		url := strings.Replace(grant.Repository, grant.Host(), "http://"+grant.Host()+"/v2", 1) + "/manifests/" + reference
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		check.Must(t, err)
		request.SetBasicAuth(grant.Username, grant.Token)
		answer, err := http.DefaultClient.Do(request)
		check.Must(t, err)
		text, err := io.ReadAll(answer.Body)
		check.Must(t, err)
		check.Must(t, answer.Body.Close())
		if answer.StatusCode != http.StatusOK || int64(len(text)) != answer.ContentLength {
			t.Fatalf("%s: %d, %d bytes of %d", reference, answer.StatusCode, len(text), answer.ContentLength)
		}
	}
	read("v1") // the connection stays
	before := openFiles()
	for range 20 {
		read("v1")
		read(digest)
	}
	if after := openFiles(); after > before+5 {
		t.Errorf("%d files are open, and %d were before", after, before)
	}
}
