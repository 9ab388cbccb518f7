//go:build moto

package codebuild_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/codebuild"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	prefix     = "slipway-test"
	project    = "slipway-test-build"
	repository = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/slipway-test"
	// uploadBucket is the bucket of uploads. Its objects are in the directory of images.
	uploadBucket = "slipway-uploads"

	layer = "arn:aws:lambda:eu-central-1:123456789012:layer:slipway-test-build-tools:1"
)

// tools is the path of the layer's archive.
var tools string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tools-")
	if err == nil {
		tools = filepath.Join(dir, "tools.zip")
		err = packTools(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// packTools builds the program of the layer.
func packTools(dir string) error {
	program := filepath.Join(dir, "slipway-recipe")
	build := exec.Command("go", "build", "-o", program, "../../../cmd/slipway-recipe")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	file, err := archive.Create("slipway-recipe")
	if err != nil {
		return err
	}
	_, err = file.Write(binary)
	return errors.Join(err, archive.Close(), os.WriteFile(tools, packed.Bytes(), 0o644))
}

// account is an AWS account as far as the builder needs it: a CodeBuild that runs build
// specifications with bash, a Secrets Manager, and a registry. It speaks the protocols of the
// real services. The tests contain the error texts of the real services.
type account struct {
	t   *testing.T
	url string
	// bin holds the programs docker and aws. calls is the file with the command lines of
	// docker, images the directory of the images that docker has built.
	bin, calls, images string

	mu      sync.Mutex
	builds  map[string]*run
	tokens  map[string]string
	secrets map[string]string
	pushed  map[string]bool
	// kept are the uploads that builds have named.
	kept []string
	// called are the names of all operations that were called, requests the bodies of
	// StartBuild.
	called   []string
	requests []string
	// refuse answers an operation in place of the account, if it returns a status.
	refuse func(operation string) (status int, code, message string)
}

// run is one build.
type run struct {
	cancel context.CancelFunc
	// phase is the phase of the build that the account reports, also as its last one.
	phase string
	// ended is closed at the end.
	ended     chan struct{}
	status    string
	tag       string
	variables map[string]string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{
		t: t, bin: t.TempDir(), images: t.TempDir(), builds: map[string]*run{}, tokens: map[string]string{}, secrets: map[string]string{},
		pushed: map[string]bool{}, refuse: func(string) (int, string, string) { return 0, "", "" },
	}
	a.calls = filepath.Join(a.bin, "calls")
	check.Must(t, os.WriteFile(a.calls, nil, 0o600))
	check.Must(t, os.WriteFile(filepath.Join(a.bin, "aws"), []byte(`#!/bin/sh
echo "aws $*" >>"$CALLS"
case $2 in
  get-layer-version-by-arn) echo "file://`+tools+`" ;;
  head-object) [ -e "$IMAGES/$6" ] || { echo 'An error occurred (403) when calling the HeadObject operation: Forbidden' >&2; exit 254; }; stat -c %s "$IMAGES/$6" ;;
  cp) cp "$IMAGES/${4#s3://`+uploadBucket+`/}" "$5" ;;
  *) sed -n 's/^credential_process = //p' "$HOME/.aws/config" 2>/dev/null | sh; echo password ;;
esac
`), 0o755))
	check.Must(t, os.WriteFile(filepath.Join(a.bin, "docker"), []byte(`#!/bin/bash
echo "docker $*" >>"$CALLS"
case $1 in
  login) read -r word; echo "password $word" >>"$CALLS" ;;
  build) while [ $# -gt 1 ]; do [ "$1" = --file ] && cp "$2" "$IMAGES/Dockerfile"; shift; done; cp -a "$1" "$IMAGES/context"
    [ ! -e "$IMAGES/said" ] || { cat "$IMAGES/said"; exit 3; } ;;
  image) echo '["elsewhere@sha256:1","`+repository+`@sha256:2"]' ;;
esac
`), 0o755))
	server := httptest.NewServer(a)
	a.url = server.URL
	t.Cleanup(func() {
		a.mu.Lock()
		runs := a.builds
		a.mu.Unlock()
		for _, r := range runs {
			r.cancel()
			<-r.ended
		}
		server.Close()
	})
	return a
}

// awsConfig returns the configuration for services that answer at the URL.
func awsConfig(url string) aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	}
}

// bucket notes which uploads are kept.
type bucket struct {
	*s3.Store
	of *account
}

func (b bucket) Keep(_ context.Context, ref upload.Ref) error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.kept = append(b.of.kept, ref.Path())
	return nil
}

// builder returns a builder of the account that polls often.
func (a *account) builder(change ...func(*codebuild.Config)) *codebuild.Builder {
	a.t.Helper()
	cfg := codebuild.Config{
		AWS: awsConfig(a.url), Table: fixtures.Table(a.t), NamePrefix: prefix, Project: project, ECRRepository: repository, Tools: layer,
		Uploads: bucket{s3.New(awsConfig(a.url), uploadBucket), a},
		After:   func(time.Duration) <-chan time.Time { return time.After(20 * time.Millisecond) },
	}
	for _, c := range change {
		c(&cfg)
	}
	b, err := codebuild.New(cfg)
	check.Must(a.t, err)
	return b
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); errors.Is(err, io.ErrUnexpectedEOF) || r.Context().Err() != nil {
		return // a caller whose time is over ends the connection in the middle of its request
	} else if err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	a.called = append(a.called, operation)
	refuse := a.refuse
	a.mu.Unlock()
	if status, code, message := refuse(operation); status != 0 {
		refused(w, status, code, message)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	serve, ok := map[string]func(http.ResponseWriter, json.RawMessage){
		"StartBuild": a.startBuild, "BatchGetBuilds": a.getBuilds, "ListBuildsForProject": a.listBuilds, "StopBuild": a.stopBuild, "BatchDeleteImage": a.deleteImage,
		"CreateSecret": a.createSecret, "PutSecretValue": a.putSecret, "DeleteSecret": a.deleteSecret,
	}[operation]
	if !ok {
		refused(w, http.StatusBadRequest, "UnknownOperationException", operation)
		return
	}
	serve(w, body)
}

func refused(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"__type":%q,"message":%q}`, code, message)
}

func (a *account) answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	check.Must(a.t, json.NewEncoder(w).Encode(value))
}

func (a *account) startBuild(w http.ResponseWriter, body json.RawMessage) {
	a.requests = append(a.requests, string(body))
	var in struct {
		ProjectName, IdempotencyToken, BuildspecOverride string
		EnvironmentVariablesOverride                     []struct{ Name, Value, Type string }
	}
	check.Must(a.t, json.Unmarshal(body, &in))
	if known := a.tokens[in.IdempotencyToken]; known != "" {
		a.answer(w, map[string]any{"build": map[string]any{"id": known}})
		return
	}
	buildID := in.ProjectName + ":" + id.New(time.Now())
	a.tokens[in.IdempotencyToken] = buildID
	dir := a.t.TempDir()
	open(a.t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{cancel: cancel, ended: make(chan struct{}), status: "IN_PROGRESS"}
	env := []string{"PATH=" + a.bin + ":" + os.Getenv("PATH"), "CALLS=" + a.calls, "IMAGES=" + a.images, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/the-role"}
	for _, v := range in.EnvironmentVariablesOverride {
		switch {
		case v.Name == "SLIPWAY_IMAGE_TAG":
			r.tag = v.Value
		case v.Name == "SLIPWAY_DIR":
			v.Value = filepath.Join(dir, "slipway")
		case v.Name == "SLIPWAY_USER":
			v.Value = strconv.Itoa(firstUser + int(commands.Add(1)))
		case v.Type == "SECRETS_MANAGER":
			v.Value = a.secrets[v.Value]
		}
		env = append(env, v.Name+"="+v.Value)
	}
	a.builds[buildID] = r
	go a.run(ctx, r, dir, in.BuildspecOverride, env)
	a.answer(w, map[string]any{"build": map[string]any{"id": buildID, "buildStatus": "IN_PROGRESS"}})
}

// open lets other users pass through a test's directory and its parent, as they may pass
// through /tmp.
func open(t *testing.T, dir string) {
	t.Helper()
	check.Must(t, os.Chmod(dir, 0o711))
	check.Must(t, os.Chmod(filepath.Dir(dir), 0o711))
}

// run runs the commands of a build specification one after the other in one shell, and notes the
// variables that it exports.
func (a *account) run(ctx context.Context, r *run, dir, text string, env []string) {
	defer close(r.ended)
	var spec struct {
		Env struct {
			Shell     string
			Variables []string `json:"exported-variables"`
		}
		Phases map[string]struct{ Commands []string }
	}
	check.Must(a.t, json.Unmarshal([]byte(text), &spec))
	commands := append([]string{"set -e"}, spec.Phases["build"].Commands...)
	for _, name := range spec.Env.Variables {
		commands = append(commands, fmt.Sprintf(`printf %%s "$%s" >%q`, name, filepath.Join(dir, name)))
	}
	shell := exec.CommandContext(ctx, spec.Env.Shell, "-c", strings.Join(commands, "\n"))
	shell.Env, shell.Dir = env, dir
	shell.WaitDelay = time.Second
	output, err := shell.CombinedOutput()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.t.Logf("build: %v\n%s", err, output)
	r.variables = map[string]string{}
	for _, name := range spec.Env.Variables {
		value, _ := os.ReadFile(filepath.Join(dir, name))
		r.variables[name] = string(value)
	}
	switch {
	case ctx.Err() != nil:
		r.status = "STOPPED"
	case err != nil:
		r.status = "FAILED"
	default:
		r.status = "SUCCEEDED"
		if r.variables["SLIPWAY_IMAGE"] != "" {
			a.pushed[r.tag] = true
		}
	}
}

// listBuilds lists one build a page, the newest first.
func (a *account) listBuilds(w http.ResponseWriter, body json.RawMessage) {
	var in struct{ ProjectName, SortOrder, NextToken string }
	check.Must(a.t, json.Unmarshal(body, &in))
	if in.ProjectName != project || in.SortOrder != "DESCENDING" {
		refused(w, http.StatusBadRequest, "InvalidInputException", "Invalid project or order")
		return
	}
	ids := slices.Sorted(maps.Keys(a.builds))
	slices.Reverse(ids)
	at, _ := strconv.Atoi(in.NextToken)
	answer := map[string]any{"ids": ids[min(at, len(ids)):min(at+1, len(ids))]}
	if at+1 < len(ids) {
		answer["nextToken"] = strconv.Itoa(at + 1)
	}
	a.answer(w, answer)
}

func (a *account) getBuilds(w http.ResponseWriter, body json.RawMessage) {
	var in struct{ Ids []string }
	check.Must(a.t, json.Unmarshal(body, &in))
	var found []any
	for _, buildID := range in.Ids {
		r := a.builds[buildID]
		if r == nil {
			continue
		}
		var exported []map[string]string
		for name, value := range r.variables {
			exported = append(exported, map[string]string{"name": name, "value": value})
		}
		found = append(found, map[string]any{
			"id": buildID, "startTime": id.Time(strings.TrimPrefix(buildID, project+":")).Unix(), "environment": map[string]any{"environmentVariables": []any{map[string]string{"name": "SLIPWAY_IMAGE_TAG", "value": r.tag}}},
			"buildStatus": r.status, "currentPhase": r.phase, "exportedEnvironmentVariables": exported,
			"phases": []any{map[string]any{"phaseType": cmp.Or(r.phase, "BUILD"), "phaseStatus": r.status, "contexts": []any{
				map[string]string{"statusCode": "COMMAND_EXECUTION_ERROR", "message": "Error while executing command"},
			}}},
		})
	}
	a.answer(w, map[string]any{"builds": found})
}

func (a *account) stopBuild(w http.ResponseWriter, body json.RawMessage) {
	var in struct{ ID string }
	check.Must(a.t, json.Unmarshal(body, &in))
	a.builds[in.ID].cancel()
	a.answer(w, map[string]any{"build": map[string]any{"id": in.ID, "buildStatus": "IN_PROGRESS"}})
}

func (a *account) deleteImage(w http.ResponseWriter, body json.RawMessage) {
	var in struct {
		RepositoryName string
		ImageIds       []struct{ ImageTag string }
	}
	check.Must(a.t, json.Unmarshal(body, &in))
	if in.RepositoryName != "slipway-test" {
		refused(w, http.StatusBadRequest, "RepositoryNotFoundException", "The repository with name '"+in.RepositoryName+"' does not exist in the registry with id '123456789012'")
		return
	}
	failures := []any{}
	for _, image := range in.ImageIds {
		if !a.pushed[image.ImageTag] {
			failures = append(failures, map[string]any{"imageId": image, "failureCode": "ImageNotFound", "failureReason": "Requested image not found"})
		}
		delete(a.pushed, image.ImageTag)
	}
	a.answer(w, map[string]any{"failures": failures})
}

func (a *account) createSecret(w http.ResponseWriter, body json.RawMessage) {
	var in struct{ Name, SecretString string }
	check.Must(a.t, json.Unmarshal(body, &in))
	if _, exists := a.secrets[in.Name]; exists {
		refused(w, http.StatusBadRequest, "ResourceExistsException", "The operation failed because the secret "+in.Name+" already exists.")
		return
	}
	a.secrets[in.Name] = in.SecretString
	a.answer(w, map[string]string{"Name": in.Name})
}

func (a *account) putSecret(w http.ResponseWriter, body json.RawMessage) {
	var in struct{ SecretID, SecretString string }
	check.Must(a.t, json.Unmarshal(body, &in))
	a.secrets[in.SecretID] = in.SecretString
	a.answer(w, map[string]string{"Name": in.SecretID})
}

func (a *account) deleteSecret(w http.ResponseWriter, body json.RawMessage) {
	var in struct {
		SecretID                   string
		ForceDeleteWithoutRecovery bool
	}
	check.Must(a.t, json.Unmarshal(body, &in))
	if _, exists := a.secrets[in.SecretID]; !exists || !in.ForceDeleteWithoutRecovery {
		refused(w, http.StatusBadRequest, "ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
		return
	}
	delete(a.secrets, in.SecretID)
	a.answer(w, map[string]string{"Name": in.SecretID})
}

func (a *account) operations() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.called, " ")
}

// serveGit serves a repository over HTTP. If credentials is not "", a client must send them.
func serveGit(t *testing.T, repo buildtest.Repo, credentials string) string {
	t.Helper()
	backend := &cgi.Handler{
		Path: buildtest.Git, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(repo.Dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if credentials != "" && user+":"+password != credentials {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(repo.Dir)
}

func newSpec(url string) build.Spec {
	return build.Spec{Workspace: id.New(time.Now()), Deployment: id.New(time.Now()), Revision: id.New(time.Now()), RepoURL: url, Ref: "main"}
}

// end starts a build and waits for its end.
func end(t *testing.T, b *codebuild.Builder, spec build.Spec) build.Result {
	t.Helper()
	check.Must(t, b.Start(t.Context(), spec))
	result, err := b.Await(t.Context(), spec.Revision)
	check.Must(t, err)
	return result
}

// wantFailure checks how a build of these files fails.
func wantFailure(t *testing.T, b *codebuild.Builder, spec build.Spec, reason string, words ...string) build.Result {
	t.Helper()
	result := end(t, b, spec)
	if result.State != build.Failed || result.Reason != reason {
		t.Errorf("got %+v, want failure %s", result, reason)
	}
	for _, word := range words {
		if !strings.Contains(result.Message, word) {
			t.Errorf("message %q does not contain %q", result.Message, word)
		}
	}
	return result
}

// framework returns a configuration file with a build command.
func framework(command string) string {
	command = cmp.Or(command, "true")
	return fmt.Sprintf(`{"graphs": {"agent": "agent.go:graph", "b": {"path": "b.go:b"}}, "build": %q, "start": "./agent --fast"}`, command)
}
