package agentserver_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOKTellsOfTheDatabase when it is asked to, and only then.
func TestOKTellsOfTheDatabase(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, query := range []string{"", "?check_db=0", "?check_db=1", "?check_db=true"} {
		wantStatus(t, f.call(t, "GET", "/ok"+query, nil), http.StatusOK)
	}
	must(t, f.table.(io.Closer).Close())
	wantStatus(t, f.call(t, "GET", "/ok", nil), http.StatusOK)
	wantDetail(t, f.call(t, "GET", "/ok?check_db=1", nil), http.StatusServiceUnavailable, "The database does not answer.")
}

// TestFiguresAreShownInEachFormat of the deployment alone.
func TestFiguresAreShownInEachFormat(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, query := range []string{"", "?format=prometheus"} {
		if got := f.call(t, "GET", "/metrics"+query, nil); got.StatusCode != http.StatusOK || string(got.text) != "requests_of_"+f.deployment.Deployment+" 1\n" {
			t.Errorf("%q: got %d %s", query, got.StatusCode, got.text)
		}
	}
	shown := f.call(t, "GET", "/metrics?format=json", nil)
	wantStatus(t, shown, http.StatusOK)
	want := object{"requests": []any{object{"labels": object{"deployment": f.deployment.Deployment}, "value": 1.0}}}
	if diff := cmp.Diff(any(want), shown.body); diff != "" {
		t.Errorf("as JSON (-want +got):\n%s", diff)
	}
	wantStatus(t, f.call(t, "GET", "/metrics?format=xml", nil), http.StatusUnprocessableEntity)
}
