package controlplane_test

import (
	"net/http"
	"testing"
)

// TestAnETagOfAnotherResourceIsStale sends an ETag of the same version: of a resource that had the
// same name, of another deployment, and made up. Nothing is changed.
func TestAnETagOfAnotherResourceIsStale(t *testing.T) {
	t.Parallel()
	rule(t, conditional)
	rule(t, secretConditions)
	rule(t, authVersion)
	rule(t, memberTag)
	s := setUpAuth(t)
	for path, c := range map[string]struct {
		list        string
		body, patch object
	}{
		"/v2/auth/providers/calendar": {"/v2/auth/providers", s.newProvider("calendar"), object{"name": "other"}},
		"/v2/secrets/search":          {"/v2/secrets", object{"name": "search", "data": object{"a": "planted"}}, object{"data": object{"a": "b"}}},
		memberPath:                    {memberPath, object{"user": "ada@example.test", "role": "editor"}, object{"role": "viewer"}},
	} {
		created := s.call(t, "POST", c.list, c.body)
		if path == memberPath {
			path += "/" + created.id("id")
		}
		earlier := created.Header.Get("ETag")
		s.call(t, "DELETE", path, nil)
		s.call(t, "POST", c.list, c.body)
		later := s.call(t, "GET", path, nil).Header.Get("ETag")
		for _, tag := range []string{earlier, `"1-zzz"`, `"1"`} {
			wantStatus(t, s.send(t, "PATCH", path, c.patch, s.own.with("If-Match", tag)), http.StatusPreconditionFailed)
			wantStatus(t, s.send(t, "DELETE", path, nil, s.own.with("If-Match", tag)), http.StatusPreconditionFailed)
		}
		if now := s.call(t, "GET", path, nil).Header.Get("ETag"); now != later {
			t.Errorf("%s: it was changed: %s, then %s", path, later, now)
		}
		wantStatus(t, s.send(t, "PATCH", path, c.patch, s.own.with("If-Match", later)), http.StatusOK)
	}
	path, created := s.create(t, fromGit("a"))
	_, other := s.create(t, fromGit("b"))
	tag := other.Header.Get("ETag")
	wantStatus(t, s.send(t, "PATCH", path, object{"display_name": "x"}, s.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, s.send(t, "PATCH", path+"/resource-tiers", object{"compute_tier": "SERVERLESS_M"}, s.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, s.send(t, "POST", path+"/revisions", nil, s.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, s.send(t, "DELETE", path, nil, s.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	s.wantUnchanged(t, path, created)
}
