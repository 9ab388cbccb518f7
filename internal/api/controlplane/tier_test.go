package controlplane_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	tierRule = "PATCH …/deployment-tier and …/resource-tiers take `compute_tier`, `database_tier` or both, and make a revision that has the size; what is absent or null stays; " +
		"a serverless compute tier takes the database tier away. 200 Deployment."
	tierRefused = "A body with neither tier, a database tier that is serverless or next to a serverless compute tier, and tiers of `external_docker` are a 400, another tier a 422."
)

func TestTiersAreChanged(t *testing.T) {
	t.Parallel()
	rule(t, tierRule)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	if created.member("compute_tier") != nil || created.member("database_tier") != nil {
		t.Errorf("got %s", created.text)
	}
	latest := created.id("latest_revision_id")
	for _, step := range []struct {
		route             string
		sent              object
		compute, database any
	}{
		{"/resource-tiers", object{"compute_tier": "SERVERLESS_M", "database_tier": nil}, "SERVERLESS_M", nil},
		{"/deployment-tier", object{"compute_tier": "DEDICATED_S"}, "DEDICATED_S", nil},
		{"/resource-tiers", object{"database_tier": "DEDICATED_L"}, "DEDICATED_S", "DEDICATED_L"},
		{"/resource-tiers", object{"compute_tier": "DEDICATED_M"}, "DEDICATED_M", "DEDICATED_L"},
		{"/deployment-tier", object{"compute_tier": "SERVERLESS_S"}, "SERVERLESS_S", nil},
		{"/deployment-tier", object{"compute_tier": "DEDICATED_L", "database_tier": "DEDICATED_S"}, "DEDICATED_L", "DEDICATED_S"},
	} {
		would := f.call(t, "PATCH", path+step.route+"?validate_only=true", step.sent)
		wantStatus(t, would, http.StatusOK)
		if f.call(t, "GET", path, nil).id("latest_revision_id") != latest {
			t.Errorf("%v: validate_only made a revision", step.sent)
		}
		got := f.call(t, "PATCH", path+step.route, step.sent)
		wantStatus(t, got, http.StatusOK)
		if step.database == nil {
			wantShape(t, got, tieredShape)
		} else {
			wantShape(t, got, dedicatedShape)
		}
		if got.id("latest_revision_id") == latest {
			t.Errorf("%v made no revision", step.sent)
		}
		latest = got.id("latest_revision_id")
		for _, shown := range []response{would, got, f.call(t, "GET", path, nil)} {
			if shown.member("compute_tier") != step.compute || shown.member("database_tier") != step.database {
				t.Errorf("after %v: got %s", step.sent, shown.text)
			}
		}
	}
	// A redeploy takes the size of the revision that it repeats.
	first := created.id("latest_revision_id")
	f.deploy(t, created.id("id"))
	f.deploy(t, created.id("id")) // the other revisions, which waited
	again := f.call(t, "POST", path+"/revisions/"+first+"/redeploy", nil)
	if again.StatusCode != http.StatusOK || again.member("compute_tier") != nil || again.member("database_tier") != nil {
		t.Errorf("the first one again: got %s", again.text)
	}
}

func TestTiersThatAreRefused(t *testing.T) {
	t.Parallel()
	rule(t, tierRefused)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	image, _ := f.create(t, fromImage("image"))
	for _, route := range []string{"/deployment-tier", "/resource-tiers"} {
		for _, c := range []struct {
			path   string
			sent   object
			detail string
		}{
			{path, object{}, "compute_tier or database_tier must be given."},
			{path, object{"compute_tier": nil}, "compute_tier or database_tier must be given."},
			{path, object{"database_tier": "DEDICATED_S"}, "database_tier needs a compute_tier that is a dedicated one."},
			{path, object{"compute_tier": "SERVERLESS_S", "database_tier": "DEDICATED_S"}, "database_tier needs a compute_tier that is a dedicated one."},
			{path, object{"compute_tier": "DEDICATED_S", "database_tier": "SERVERLESS_S"}, "database_tier must be a dedicated one, not SERVERLESS_S."},
			{image, object{"compute_tier": "SERVERLESS_S"}, "compute_tier and database_tier do not apply to source external_docker: its resources are in source_config.resource_spec."},
		} {
			wantDetail(t, f.call(t, "PATCH", c.path+route, c.sent), http.StatusBadRequest, c.detail)
		}
		if diff := cmp.Diff([]problem{{"body.compute_tier", "enum"}}, problems(t, f.call(t, "PATCH", path+route, object{"compute_tier": "TINY"}))); diff != "" {
			t.Errorf("another tier (-want +got):\n%s", diff)
		}
		wantStatus(t, f.call(t, "PATCH", "/v2/deployments/"+unknownID+route, object{"compute_tier": "DEDICATED_S"}), http.StatusNotFound)
	}
	f.wantUnchanged(t, path, created)
}
