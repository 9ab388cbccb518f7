package controlplane_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const buildShown = "Revision: `build` says what it was built with: commit, server, language, dependencies and images; null before, and of an image that somebody else has built."

// TestARevisionSaysWhatItWasBuiltWith reads the build before and after it is done, the build of
// a revision that is made from that revision, and the build of an image.
func TestARevisionSaysWhatItWasBuiltWith(t *testing.T) {
	t.Parallel()
	rule(t, buildShown)
	still := setUp(t)
	path, created := still.create(t, fromGit("weather"))
	if got := still.call(t, "GET", path+"/revisions/"+created.id("latest_revision_id"), nil); got.member("build") != nil {
		t.Errorf("what is not built has %s", got.text)
	}

	f := setUpRollouts(t)
	path, created = f.create(t, fromGit("weather"))
	first := created.id("latest_revision_id")
	if status := f.await(t, path, first); status != "DEPLOYED" {
		t.Fatalf("the revision is %s", status)
	}
	want := object{
		"commit_sha": "c0ffee", "source_digest": nil, "builder": "v1", "language": "python", "language_version": "3.13.1", "dependencies_digest": "sha256:00",
		"base_image": nil, "image": nil,
	}
	again := f.call(t, "POST", path+"/revisions/"+first+"/redeploy", nil)
	wantStatus(t, again, http.StatusOK)
	second := again.id("latest_revision_id")
	if status := f.await(t, path, second); status != "DEPLOYED" || second == first {
		t.Fatalf("the revision %s is %s", second, status)
	}
	for _, id := range []string{first, second} {
		got := f.call(t, "GET", path+"/revisions/"+id, nil)
		wantShape(t, got, revisionShape)
		if diff := cmp.Diff(want, got.member("build")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	path, created = f.create(t, fromImage("image"))
	if f.await(t, path, created.id("latest_revision_id")); f.call(t, "GET", path+"/revisions/"+created.id("latest_revision_id"), nil).member("build") != nil {
		t.Error("an image that nobody built here has a build")
	}
}
