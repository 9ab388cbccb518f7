package lambdahost_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// environment is the environment of every function, as the template sets it, with the services
// at an address of the test.
func environment(services string) []string {
	return []string{
		"AWS_REGION=eu-north-1", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret-credential", "AWS_ENDPOINT_URL_DYNAMODB=" + services,
		"AWS_ENDPOINT_URL_SFN=" + services, "AWS_ENDPOINT_URL_KMS=" + services, "SLIPWAY_TABLE=slipway", "SLIPWAY_KMS_KEY=alias/slipway",
		"SLIPWAY_STATE_MACHINES=arn:aws:states:eu-north-1:123456789012:stateMachine:slipway-", "SLIPWAY_VERSION=test", "SLIPWAY_BASE_URL=",
		"SLIPWAY_ECS_LOG_GROUP=agents", "SLIPWAY_CODEBUILD_LOG_GROUP=builds",
		"SLIPWAY_ECR_REPOSITORY=123456789012.dkr.ecr.eu-north-1.amazonaws.com/slipway", "SLIPWAY_PUSH_ROLE=arn:aws:iam::123456789012:role/push", "SLIPWAY_UPLOAD_BUCKET=uploads",
	}
}

// TestBootstraps builds one function of each kind that API Gateway invokes, as it is deployed,
// starts it, and sends it a request that it can answer without a table: for such a request it
// must call no service. Before its first call it asks for the data key, and it starts although
// it does not get the key.
func TestBootstraps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags=-s", "-o", dir+string(filepath.Separator),
		"./functions/authorizer", "./functions/deployments", "./functions/runstream")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	var asked atomic.Int64
	services := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer services.Close()

	const (
		deployment = "/d/none" // no id, so that no function looks for its own authentication
		quoted     = `{\"ok\":true}`
		noOne      = `{\"detail\":\"The request is not authenticated.\"}`
	)
	for name, events := range map[string]map[string]string{
		"authorizer":  {`{"methodArn": "a/v/GET/x", "resource": "/v2/deployments", "headers": {}}`: `"errorMessage":"Unauthorized"`},
		"deployments": {at("/ok"): quoted, at("/api-host/ok"): quoted, at("/openapi.json"): `\"openapi\":\"3.1.0\"`, at("/v2/deployments"): noOne},
		"runstream":   {at(deployment + "/threads/t/runs/r/join"): strings.ReplaceAll(noOne, `\`, ""), at(deployment + "/openapi.json"): `"openapi":"3.1.0"`},
	} {
		began, before := time.Now(), asked.Load()
		api := start(t, filepath.Join(dir, name), environment(services.URL)...)
		select {
		case <-api.ready:
			t.Logf("%s asked for its first invocation after %v", name, time.Since(began).Round(time.Millisecond))
		case err := <-api.exited:
			t.Fatalf("%s does not start: %v\n%s", name, err, api.output)
		case <-time.After(patience):
			t.Fatalf("%s does not ask for its first invocation", name)
		}
		prepared := asked.Load()
		if prepared == before {
			t.Errorf("%s asks for its first call before it asks for the data key", name)
		}
		for event, want := range events {
			if got := api.invoke(event, time.Minute).rest(t); !strings.Contains(got, want) {
				t.Errorf("%s: %s: got %s", name, event, got)
			}
		}
		if n := asked.Load() - prepared; n > 0 {
			t.Errorf("%s has sent %d requests to other services, for which there was no reason", name, n)
		}
	}

	// A function without its variables ends at once, and names the missing variables.
	api := start(t, filepath.Join(dir, "deployments"), "AWS_REGION=eu-north-1")
	select {
	case err := <-api.exited:
		api.exited <- err
	case <-time.After(patience):
		t.Fatal("deployments runs without its variables")
	}
	wantLine(t, api.output, "ERROR", "SLIPWAY_TABLE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, SLIPWAY_KMS_KEY, SLIPWAY_STATE_MACHINES, "+
		"SLIPWAY_ECS_LOG_GROUP, SLIPWAY_CODEBUILD_LOG_GROUP, SLIPWAY_ECR_REPOSITORY, SLIPWAY_PUSH_ROLE, SLIPWAY_UPLOAD_BUCKET")
}
