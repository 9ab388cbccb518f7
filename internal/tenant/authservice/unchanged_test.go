package authservice_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// TestAPatchThatChangesNothingIsNoChange sends patches with the values that are there already. A
// client secret is never compared with the one that is there.
func TestAPatchThatChangesNothingIsNoChange(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made := f.createProvider(t)
	for name, c := range map[string]struct {
		patch authservice.ProviderPatch
		by    int64
	}{
		"nothing":       {},
		"the same":      {patch: authservice.ProviderPatch{Name: &made.Name, AuthURL: &made.AuthURL, UsesPKCE: &made.UsesPKCE}},
		"a secret":      {authservice.ProviderPatch{ClientSecret: new(clientSecret)}, 1},
		"another name":  {authservice.ProviderPatch{Name: new("another")}, 1},
		"nothing, once": {patch: authservice.ProviderPatch{Expect: nil}},
	} {
		before, err := f.Provider(t.Context(), workspace, providerID)
		if err != nil {
			t.Fatal(err)
		}
		if c.patch.Name == &made.Name {
			c.patch.Name = &before.Name
		}
		after, err := f.PatchProvider(t.Context(), workspace, providerID, c.patch)
		if err != nil || after.Version() != before.Version()+c.by || after.Updated.Equal(before.Updated) != (c.by == 0) {
			t.Errorf("%s: version %d of %s, then %d of %s (%v)", name, before.Version(), before.Updated, after.Version(), after.Updated, err)
		}
	}
}

func TestATokenPatchThatChangesNothingIsNoChange(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	token := f.imported(t)
	full := authservice.TokenPatch{Label: new("home"), Metadata: json.RawMessage(`{"b": 1}`), Default: new(true)}
	before, err := f.PatchToken(t.Context(), token.TokenRef, full)
	if err != nil {
		t.Fatal(err)
	}
	events := f.events(t)
	for _, patch := range []authservice.TokenPatch{{}, full, {Default: new(true)}} {
		after, err := f.PatchToken(t.Context(), token.TokenRef, patch)
		if err != nil || !after.Updated.Equal(before.Updated) {
			t.Errorf("%+v: of %s, then of %s (%v)", patch, before.Updated, after.Updated, err)
		}
	}
	if diff := cmp.Diff(events, f.events(t)); diff != "" {
		t.Errorf("events (-before +after):\n%s", diff)
	}
}
