package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestRepositories(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	want := []integration.Repository{
		{Integration: i.Integration, ID: 11, Name: "agent", Owner: "acme", URL: f.github.URL + "/acme/agent", DefaultBranch: "main"},
		{Integration: i.Integration, ID: 12, Name: "secret", Owner: "acme", URL: f.github.URL + "/acme/secret", DefaultBranch: "trunk"},
	}
	got, err := f.Repositories(t.Context(), i.Ref)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, r := range got {
		_, err := f.Check(t.Context(), workspace, i.Integration, r.URL)
		check.Must(t, err)
	}
	for _, ref := range []integration.Ref{{Workspace: other, Integration: i.Integration}, {Workspace: workspace, Integration: unknown}, {Workspace: workspace, Integration: "x"}} {
		_, err = f.Repositories(t.Context(), ref)
		wantFault(t, err, fault.NotFound, ref.Integration)
	}
	f.github.Install(githubtest.Installation{ID: 77, Account: "acme"})
	if none, err := f.Repositories(t.Context(), i.Ref); err != nil || none == nil || len(none) != 0 {
		t.Errorf("got %v (%v), want an empty list", none, err)
	}
}

// many installs an organization with n repositories.
func (f *fixture) many(n int) {
	installation := githubtest.Installation{ID: 77, Account: "acme", AccountID: 500}
	for id := range int64(n) {
		installation.Repositories = append(installation.Repositories, githubtest.Repository{ID: id + 1, Owner: "acme", Name: fmt.Sprintf("r%d", id+1)})
	}
	f.github.Install(installation)
}

func TestRepositoriesOfManyPages(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	f.many(250)
	got, err := f.Repositories(t.Context(), i.Ref)
	check.Must(t, err)
	for n, r := range got {
		if r.ID != int64(n+1) {
			t.Fatalf("repository %d is %+v", n, r)
		}
	}
	asked := f.github.Asked("/app/", "/user", "/login")
	if diff := cmp.Diff([]string{
		"GET /api/v3/installation/repositories?page=1&per_page=100",
		"GET /api/v3/installation/repositories?page=2&per_page=100",
		"GET /api/v3/installation/repositories?page=3&per_page=100",
	}, asked); diff != "" || len(got) != 250 {
		t.Errorf("got %d, asked (-want +got):\n%s", len(got), diff)
	}
	f.many(2150)
	if got, err = f.Repositories(t.Context(), i.Ref); err != nil || len(got) != integration.MaxRepositories {
		t.Errorf("got %d (%v)", len(got), err)
	}
}

func TestRepositoryPages(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	f.many(7)
	var got []string
	cursor, sizes := "", []int{}
	for {
		page, next, err := f.RepositoryPage(t.Context(), i.Ref, 3, cursor)
		check.Must(t, err)
		for _, r := range page {
			got = append(got, r.Name)
		}
		if sizes = append(sizes, len(page)); next == "" {
			break
		}
		cursor = next
	}
	if diff := cmp.Diff([]int{3, 3, 1}, sizes); diff != "" || strings.Join(got, " ") != "r1 r2 r3 r4 r5 r6 r7" {
		t.Errorf("got %v, pages (-want +got):\n%s", got, diff)
	}
	for _, bad := range []string{"x", "!", cursor[1:], "MSBvZiAz"} {
		_, _, err := f.RepositoryPage(t.Context(), i.Ref, 3, bad)
		wantFault(t, err, fault.Unprocessable)
	}
	_, _, err := f.RepositoryPage(t.Context(), i.Ref, 4, cursor)
	wantFault(t, err, fault.Unprocessable)
}

// TestAListOfASuspendedInstallation uses a token that was revoked.
func TestAListOfASuspendedInstallation(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	_, err := f.Repositories(t.Context(), i.Ref)
	check.Must(t, err)
	f.github.Install(githubtest.Installation{ID: 77, Account: "acme", Suspended: true})
	if _, err = f.Repositories(t.Context(), i.Ref); err == nil {
		t.Error("got no error")
	}
	_, err = f.Repositories(t.Context(), i.Ref)
	wantFault(t, err, fault.Conflict, "suspended")
	f.github.Install(acme)
	f.github.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		limited := strings.Contains(r.URL.RawQuery, "page=")
		if limited {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return limited
	})
	_, err = f.Repositories(t.Context(), i.Ref)
	wantFault(t, err, fault.Unavailable, "5s")
}
