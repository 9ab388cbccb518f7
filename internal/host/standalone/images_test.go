package standalone_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestImagesArePushedToTheServer logs in with a token at the server's own address, beside the
// control plane, and begins a push.
func TestImagesArePushedToTheServer(t *testing.T) {
	t.Parallel()
	credentials, stop := serve(t, t.TempDir())
	defer stop()
	c := clientOf(credentials)
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", map[string]any{
		"name": "pushed", "source": "internal_docker", "secrets": []any{}, "source_config": map[string]any{"deployment_type": "dev"}, "source_revision_config": map[string]any{},
	})
	grant := c.call(t, http.StatusOK, "POST", fmt.Sprintf("/v2/deployments/%s/push-token", d["id"]), map[string]any{"supports_registry_username": true})
	repository := fmt.Sprint(grant["repository_url"])
	if host := strings.TrimPrefix(credentials.BaseURL, "http://"); grant["registry_url"] != host || !strings.HasPrefix(repository, host+"/images/") {
		t.Errorf("got %v, want what is at %s", grant, host)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(grant["username"], ":", grant["token"])))
	_, path, _ := strings.Cut(repository, "/")
	root := credentials.BaseURL + "/v2/"
	wantStatus(t, "a login without a token", "GET", root, nil, http.StatusUnauthorized)
	wantStatus(t, "a login with a key", "GET", root, map[string]string{"X-Api-Key": credentials.APIKey}, http.StatusUnauthorized)
	wantStatus(t, "a login", "GET", root, map[string]string{"Authorization": basic}, http.StatusOK)
	wantStatus(t, "the beginning of a push", "POST", root+path+"/blobs/uploads/", map[string]string{"Authorization": basic}, http.StatusAccepted)
	wantStatus(t, "the beginning of a push without a token", "POST", root+path+"/blobs/uploads/", nil, http.StatusUnauthorized)
	wantStatus(t, "the control plane with that token", "GET", root+"deployments", map[string]string{"Authorization": basic}, http.StatusUnauthorized)
}
