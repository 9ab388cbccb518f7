//go:build moto

package codebuild_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/codebuild"
	"github.com/slipway-run/slipway/internal/test/check"
)

// firstUser is before the users of build commands, and after those of people and services. Each
// command has its own user, as on machines of their own: commands counts them.
const firstUser = 70_000

var commands atomic.Int32

func TestACommitBecomesAnImage(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{
		"sub/framework.json": `{"graphs": {"z": "a.go:z", "a": {"path": "a.go:a", "description": "It's \"A\"."}}, "build": "echo built $CI > out", "start": "./agent --port $PORT",
			"env": {"PORT": "9000", "QUOTE": "it's \"so\"\n$HOME", "A": "b", "LG_WEBHOOK_X": "it's\n\"ünder\" <$HOME>"},
			"checkpointer": {"ttl": {"strategy": "keep_latest", "default_ttl": 0.5}}, "store": {"ttl": {"refresh_on_read": false, "default_ttl": 60}},
			"webhooks": {"headers": {"X-Key": "${{ env.LG_WEBHOOK_X }} ${{ env.LG_WEBHOOK_Y }}"}, "allowed_fields": ["run_id"], "url": {"allowed_domains": ["hooks.example.com"]}}}`,
		".dockerignore": "*",
	})
	spec := newSpec(serveGit(t, repo, ""))
	spec.ConfigPath = "./sub/framework.json"
	got := end(t, a.builder(), spec)
	want := build.Result{
		State: build.Succeeded, CommitSHA: repo.Git("rev-parse", "HEAD"),
		Artifact: build.Artifact{
			Image: repository + "@sha256:2", Graphs: []string{"a", "z"}, Descriptions: map[string]string{"a": `It's "A".`},
			Settings: build.Settings{
				Threads: &build.ThreadTTL{Strategy: "keep_latest", Minutes: 0.5}, Items: &build.ItemTTL{Minutes: new(60.0), Still: true},
				Webhooks: &build.Webhooks{
					HTTPS: true, Domains: []string{"hooks.example.com"}, MaxLength: 2048, NoLoopback: true, Fields: []string{"run_id"},
					Headers: map[string]string{"X-Key": "${{ env.LG_WEBHOOK_X }} ${{ env.LG_WEBHOOK_Y }}"}, Env: map[string]string{"LG_WEBHOOK_X": "it's\n\"ünder\" <$HOME>"},
				},
			},
		},
		Record: build.Record{Builder: got.Record.Builder, Rules: build.Rules, Base: got.Record.Base, Image: repository + "@sha256:2"},
	}
	if !strings.HasPrefix(got.Record.Base, "public.ecr.aws/") {
		t.Errorf("the record is %+v", got.Record)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	image := repository + ":" + spec.Revision
	for _, call := range []string{
		"aws lambda get-layer-version-by-arn --arn " + layer, "aws ecr get-login-password", "docker login --username AWS --password-stdin " + strings.Split(repository, "/")[0], "password password",
		"--memory-swap 2g --tag " + image, "docker push --quiet " + image,
	} {
		if !strings.Contains(read(t, a.calls), call) {
			t.Errorf("no call of %q in:\n%s", call, read(t, a.calls))
		}
	}
	dockerfile := read(t, filepath.Join(a.images, "Dockerfile"))
	for _, line := range []string{
		"FROM public.ecr.aws/", "\nUSER 10001:10001\n", "\nWORKDIR /opt/agent/sub\n", `slipway.revision="` + spec.Revision + `"`, `org.opencontainers.image.revision="` + got.CommitSHA + `"`,
		`ENTRYPOINT ["/bin/sh","/opt/slipway/start","sh","-c","exec ./agent --port $PORT"]`,
	} {
		if !strings.Contains(dockerfile, line) {
			t.Errorf("no %q in:\n%s", line, dockerfile)
		}
	}
	context := filepath.Join(a.images, "context")
	if got := read(t, filepath.Join(context, "app", "sub", "out")); got != "built true\n" {
		t.Errorf("what the build command wrote is %q", got)
	}
	if _, err := os.Stat(filepath.Join(context, ".dockerignore")); err == nil {
		t.Error("the repository's .dockerignore decides what is copied")
	}
	if _, err := os.Stat(filepath.Join(context, "app", ".git")); err == nil {
		t.Error(".git is in the image")
	}
	// The start script sets the variables that the agent does not get at run time.
	out := output(t, []string{"A=given"}, "sh", filepath.Join(context, "start"), "sh", "-c", `printf '%s|%s|%s' "$A" "$QUOTE" "${PORT-none}"`)
	if want := "given|it's \"so\"\n$HOME|none"; out != want {
		t.Errorf("environment of the agent: got %q, want %q", out, want)
	}
}

// TestACommitIsBuiltThatNoRefNames builds a commit whose branch was moved away from it and is
// gone.
func TestACommitIsBuiltThatNoRefNames(t *testing.T) {
	t.Parallel()
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("")})
	want := repo.Git("rev-parse", "HEAD")
	repo.Commit(nil)
	repo.Git("branch", "-m", "main", "other")
	b, url := newAccount(t).builder(), serveGit(t, repo, "")
	spec := newSpec(url)
	spec.Commit = want
	if got := end(t, b, spec); got.State != build.Succeeded || got.CommitSHA != want {
		t.Errorf("got %+v, want the commit %s", got, want)
	}
	spec = newSpec(url)
	spec.Commit = strings.Repeat("1", 40)
	if got := end(t, b, spec); got.Reason != build.ReasonRefNotFound || !strings.Contains(got.Message, "does not give out the commit "+spec.Commit) {
		t.Errorf("got %+v, want that there is no such commit", got)
	}
}

func TestAnAgentWithoutEnvironmentIsTheEntrypoint(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"a": "a:a"}, "start": ["./agent", "a; \"b\""]}`})
	end(t, a.builder(), newSpec(serveGit(t, repo, "")))
	if got, want := read(t, filepath.Join(a.images, "Dockerfile")), `ENTRYPOINT ["./agent","a; \"b\""]`; !strings.Contains(got, want) {
		t.Errorf("no %s in:\n%s", want, got)
	}
}

// TestAPythonRepositoryNeedsNoCommands builds a repository that names neither a build command
// nor a start command. Nothing of the repository runs outside of the image.
func TestAPythonRepositoryNeedsNoCommands(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{
		"framework.json":   `{"graphs": {"a": "./a.py:a"}, "python_version": "3.12", "dependencies": ["."], "build": "touch here", "dockerfile_lines": ["RUN true"]}`,
		"requirements.txt": "six==1.16.0\n", "a.py": "a = None\n",
	})
	if got := end(t, a.builder(), newSpec(serveGit(t, repo, ""))); got.State != build.Succeeded || len(got.Artifact.Graphs) != 1 {
		t.Fatalf("got %+v", got)
	}
	dockerfile := read(t, filepath.Join(a.images, "Dockerfile"))
	for _, line := range []string{
		"FROM public.ecr.aws/docker/library/python:3.12-slim\nRUN true\nUSER 0:0\n", "/opt/agent/requirements.txt", `"slipway_runtime","--config","/opt/agent/framework.json"]`,
		`org.opencontainers.image.created="2026-01-01T00:00:00Z"`,
	} {
		if !strings.Contains(dockerfile, line) {
			t.Errorf("no %q in:\n%s", line, dockerfile)
		}
	}
	context := filepath.Join(a.images, "context")
	if _, err := os.Stat(filepath.Join(context, "app", "here")); err == nil {
		t.Error("the build command has run outside of the image")
	}
	if got := read(t, filepath.Join(context, "commands", "build")); got != "touch here\n" {
		t.Errorf("the image runs %q", got)
	}
	if read(t, filepath.Join(context, "runtime", "slipway_runtime", "server.py")) == "" {
		t.Error("the runtime is not there")
	}
}

// TestSettingsAreReturned builds repositories with the keys that the agent server serves. A stack
// refuses encryption by its name.
func TestSettingsAreReturned(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	built := func(key, value string) build.Result {
		repo := buildtest.NewRepo(t, map[string]string{
			"framework.json": `{"graphs": {"a": "./a.py:a"}, "dependencies": ["."], "` + key + `": ` + value + `}`,
			"pyproject.toml": "", "a.py": "", "app.py": "", "auth.py": "", "embed.py": "",
		})
		return end(t, a.builder(), newSpec(serveGit(t, repo, "")))
	}
	for key, c := range map[string]struct {
		value string
		want  build.Artifact
	}{
		"auth": {`{"path": "./auth.py:auth"}`, build.Artifact{Auth: "./auth.py:auth"}},
		"http": {`{"app": "./app.py:app", "enable_custom_route_auth": true, "cors": {"allow_origin_regex": "https://(a|b)\\.\"x$"}}`, build.Artifact{
			Settings: build.Settings{HTTP: &build.HTTP{App: "./app.py:app", RouteAuth: true, CORS: &build.CORS{OriginPattern: `https://(a|b)\."x$`}}},
		}},
		"store": {`{"index": {"embed": "./embed.py:embed", "dims": 256}}`, build.Artifact{
			Settings: build.Settings{Items: &build.ItemTTL{}, Index: &build.Index{Embed: "./embed.py:embed", Dims: 256}},
		}},
		"webhooks": {`{"allowed_fields": ["run_id"]}`, build.Artifact{
			Settings: build.Settings{Webhooks: &build.Webhooks{NoLoopback: true, MaxLength: 4096, Fields: []string{"run_id"}}},
		}},
	} {
		got := built(key, c.value)
		c.want.Image, c.want.Graphs = got.Artifact.Image, []string{"a"}
		if diff := cmp.Diff(c.want, got.Artifact); got.State != build.Succeeded || diff != "" {
			t.Errorf("%s: %s, artifact (-want +got):\n%s", key, got.Message, diff)
		}
	}
	if got := built("encryption", `{"path": "./auth.py:encryption"}`); got.Reason != build.ReasonConfigInvalid || !strings.Contains(got.Message, "- encryption: ") {
		t.Errorf("encryption: got %+v", got)
	}
}

// TestSettingsAreTooLarge refuses settings that a variable of a build need not hold.
func TestSettingsAreTooLarge(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{
		"framework.json": `{"graphs": {"a": "a:a"}, "start": "./agent", "webhooks": {"headers": {"X-Large": "` + strings.Repeat("x", 17<<10) + `"}}, "checkpointer": {"ttl": {"default_ttl": 1}}}`,
	})
	wantFailure(t, a.builder(), newSpec(serveGit(t, repo, "")), build.ReasonConfigInvalid, "- webhooks: the settings of auth, ", "may take 16384")
}

// TestAStepOfTheImageFails reads docker's messages about a step of the repository, and about a
// step of the platform.
func TestAStepOfTheImageFails(t *testing.T) {
	t.Parallel()
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"a": "./a.mjs:a"}}`, "package.json": "{}"})
	url := serveGit(t, repo, "")
	said := strings.NewReplacer(`\x1b`, "\x1b").Replace(`Step 1/20 : FROM node
 ---> 0123
Step %d/20 : RUN export HOME=/tmp/build
 ---> Running in 4567
\x1b[91mno package of this name
\x1b[0mRemoving intermediate container 4567
The command '/bin/sh -c' returned a non-zero code: 3
`)
	a := newAccount(t)
	check.Must(t, os.WriteFile(filepath.Join(a.images, "said"), fmt.Appendf(nil, said, 8), 0o600))
	spec := newSpec(url)
	spec.InstallCommand = "make packages"
	wantFailure(t, a.builder(), spec, build.ReasonDependenciesFailed, `the install command "make packages" exited with code 3. Its last output:`+"\nno package of this name")
	if calls := read(t, a.calls); strings.Contains(calls, "docker push") {
		t.Errorf("an image was pushed: %s", calls)
	}
	a = newAccount(t)
	check.Must(t, os.WriteFile(filepath.Join(a.images, "said"), fmt.Appendf(nil, said, 7), 0o600))
	b := a.builder()
	check.Must(t, b.Start(t.Context(), spec))
	_, err := b.Await(t.Context(), spec.Revision)
	if err == nil || !strings.Contains(err.Error(), "COMMAND_EXECUTION_ERROR") {
		t.Errorf("a step of the platform has failed: got %v", err)
	}
}

// The build command must see nothing of the platform: no credentials, no variables of the
// script, and no variables of other processes.
func TestTheBuildCommandIsAStranger(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{
		"framework.json": framework(`env > env; cat /proc/$PPID/environ > parent 2>/dev/null; id -u > user; cat "$HOME/../result" > result 2>/dev/null; true`),
	})
	spec := newSpec(serveGit(t, repo, "me:hunter2"))
	spec.Credentials = "me:hunter2"
	if got := end(t, a.builder(), spec); got.State != build.Succeeded {
		t.Fatalf("got %+v", got)
	}
	app := filepath.Join(a.images, "context", "app")
	names := []string{"env"}
	if os.Getuid() == 0 { // as in CodeBuild; without root the script cannot switch to another user
		names = append(names, "parent")
	}
	for _, name := range names {
		text := read(t, filepath.Join(app, name))
		for _, word := range []string{"hunter2", "SLIPWAY", "AWS_", "the-role"} {
			if strings.Contains(text, word) {
				t.Errorf("%s shows %s:\n%s", name, word, text)
			}
		}
	}
	user, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(app, "user"))))
	if check.Must(t, err); os.Getuid() == 0 && user <= firstUser {
		t.Errorf("it runs as user %d", user)
	}
}

// TestTheBuildCommandOwnsNoSettings has a build command that leaves settings in its home, which
// make aws run a program.
func TestTheBuildCommandOwnsNoSettings(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	ran := filepath.Join(a.images, "ran")
	repo := buildtest.NewRepo(t, map[string]string{
		"framework.json": framework(`mkdir "$HOME/.aws" && echo "credential_process = id -u >` + ran + `" >"$HOME/.aws/config"`),
	})
	if got := end(t, a.builder(), newSpec(serveGit(t, repo, ""))); got.State != build.Succeeded {
		t.Fatalf("got %+v", got)
	}
	if user, err := os.ReadFile(ran); err == nil {
		t.Errorf("a program of the build command ran as user %s", user)
	}
}

// TestTheBuildCommandLeavesNoProcess has a build command that leaves a process in a session of its
// own.
func TestTheBuildCommandLeavesNoProcess(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // only root gives the command a user of its own, as in CodeBuild
	}
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("setsid sleep 600 >/dev/null 2>&1 & echo $! > left")})
	if got := end(t, a.builder(), newSpec(serveGit(t, repo, ""))); got.State != build.Succeeded {
		t.Fatalf("got %+v", got)
	}
	left := strings.TrimSpace(read(t, filepath.Join(a.images, "context", "app", "left")))
	if status, err := os.ReadFile(filepath.Join("/proc", left, "status")); err == nil && !strings.Contains(string(status), "State:\tZ") {
		t.Errorf("process %s lives on", left)
		output(t, nil, "kill", left)
	}
}

func TestAPrivateRepository(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("")})
	url := serveGit(t, repo, "me:pass:wörd%20")
	for name, c := range map[string]struct {
		credentials string
		words       []string
	}{
		"none":  {"", []string{"no credentials are known for it"}},
		"wrong": {"me:else", []string{"it may have refused the credentials"}},
	} {
		t.Log(name)
		spec := newSpec(url)
		spec.Credentials = c.credentials
		wantFailure(t, a.builder(), spec, build.ReasonRepoUnreachable, c.words...)
	}
	spec := newSpec(url)
	spec.Credentials = "me:pass:wörd%20"
	if got := end(t, a.builder(), spec); got.State != build.Succeeded {
		t.Fatalf("got %+v", got)
	}
	for _, text := range append(a.requests, read(t, a.calls)) {
		if strings.Contains(text, "wörd") {
			t.Errorf("the password is in %s", text)
		}
	}
	if len(a.secrets) > 0 {
		t.Errorf("secrets are left: %v", a.secrets)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{
		"framework.json": framework(""), "sub/framework.json": framework("echo to stdout; echo to stderr >&2; exit 3"),
		"killed.json": framework("kill -9 $$"), "missing.json": `{"graphs": {"a": "a:a"}, "start": "x", "build": ["no-such-program"]}`,
		"text.json": "{\n oops", "list.json": "[]", "two.json": "{}{}", "away": "-> /etc", "odd name/framework.json": framework(""),
		"all.json": `{"build": 5, "env": {"A": 1}}`, "large.json": strings.Repeat(" ", 1<<20+1),
	})
	repo.Git("branch", "refs/heads/odd") // git lists it for refs/heads/odd, too
	url := serveGit(t, repo, "")
	for name, c := range map[string]struct {
		url, ref, path string
		reason         string
		words          []string
	}{
		"no repository":     {"http://127.0.0.1:1/x", "", "", build.ReasonRepoUnreachable, []string{"cannot be cloned", "Its last output"}},
		"no such path":      {url + "x", "", "", build.ReasonRepoUnreachable, []string{"cannot be cloned"}},
		"file of a machine": {"file:///etc", "", "", build.ReasonRepoUnreachable, []string{"use https:// or ssh://"}},
		"path of a machine": {"/etc", "", "", build.ReasonRepoUnreachable, []string{"use https:// or ssh://"}},
		"an option":         {"--upload-pack=x", "", "", build.ReasonRepoUnreachable, []string{"use https:// or ssh://"}},
		"no branch":         {url, "nope", "", build.ReasonRefNotFound, []string{`has no branch named "nope"`}},
		"part of a branch":  {url, "in", "", build.ReasonRefNotFound, []string{`has no branch named "in"`}},
		"end of a branch":   {url, "odd", "", build.ReasonRefNotFound, []string{`has no branch named "odd"`}},
		"no tag":            {url, "refs/tags/v1", "", build.ReasonRefNotFound, []string{`has no tag named "v1"`}},
		"no file":           {url, "", "nope.json", build.ReasonConfigNotFound, []string{`"nope.json"`}},
		"file outside":      {url, "", "../framework.json", build.ReasonConfigInvalid, []string{"cannot be read"}},
		"absolute file":     {url, "", "/etc/passwd", build.ReasonConfigInvalid, []string{"cannot be read"}},
		"link outside":      {url, "", "away/passwd", build.ReasonConfigInvalid, []string{"cannot be read"}},
		"a directory":       {url, "", "sub", build.ReasonConfigInvalid, []string{"cannot be read"}},
		"a large file":      {url, "", "large.json", build.ReasonConfigInvalid, []string{"cannot be read"}},
		"odd directory":     {url, "", "odd name/framework.json", build.ReasonConfigInvalid, []string{`the path "odd name"`}},
		"not JSON":          {url, "", "text.json", build.ReasonConfigInvalid, []string{"text.json is not a JSON object", "line"}},
		"a list":            {url, "", "list.json", build.ReasonConfigInvalid, []string{"list.json is not a JSON object"}},
		"two objects":       {url, "", "two.json", build.ReasonConfigInvalid, []string{"two.json is not a JSON object"}},
		"all at once": {url, "", "all.json", build.ReasonConfigInvalid,
			[]string{"all.json cannot be used:\n- graphs: is missing", "\n- build: must be a command", "\n- env.A: must be a string"}},
		"command fails":  {url, "", "sub/framework.json", build.ReasonBuildCommandFailed, []string{"exited with code 3", "to stdout\nto stderr"}},
		"command killed": {url, "", "killed.json", build.ReasonBuildCommandFailed, []string{"was killed by signal 9"}},
		"no command":     {url, "", "missing.json", build.ReasonBuildCommandFailed, []string{`"no-such-program" exited with code 12`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(c.url)
			if c.ref != "" {
				spec.Ref = c.ref
			}
			spec.ConfigPath = c.path
			wantFailure(t, a.builder(), spec, c.reason, c.words...)
			if calls := read(t, a.calls); strings.Contains(calls, "docker") || strings.Contains(calls, "aws ecr") {
				t.Errorf("docker or ecr was called: %s", calls)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("echo slow; sleep 60")})
	url := serveGit(t, repo, "")
	check.InTime(t, 2*time.Second, func(limit time.Duration) bool {
		b, spec := a.builder(func(c *codebuild.Config) { c.Timeout = limit }), newSpec(url)
		got := wantFailure(t, b, spec, build.ReasonBuildTimeout, fmt.Sprintf("stopped after %.0f seconds", limit.Seconds()))
		return strings.Contains(got.Message, "was running") && strings.Contains(got.Message, "slow")
	})
}

// TestTagsAndSubmodules builds an annotated tag of a repository with a submodule.
func TestTagsAndSubmodules(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	inner := buildtest.NewRepo(t, map[string]string{"inside": "here"})
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("cat lib/inside")})
	repo.Git("submodule", "add", "-q", inner.URL(), "lib")
	check.Must(t, os.Remove(filepath.Join(repo.Dir, ".gitmodules")))
	repo.Commit(map[string]string{".gitmodules": "[submodule \"lib\"]\n\tpath = lib\n\turl = " + serveGit(t, inner, "") + "\n"})
	repo.Git("tag", "-a", "-m", "one", "v1")
	spec := newSpec(serveGit(t, repo, ""))
	spec.Ref = "refs/tags/v1"
	if got := end(t, a.builder(), spec); got.State != build.Succeeded || got.CommitSHA != repo.Git("rev-parse", "HEAD") {
		t.Errorf("got %+v", got)
	}
	if got := read(t, filepath.Join(a.images, "context", "app", "lib", "inside")); got != "here" {
		t.Errorf("submodule has %q", got)
	}
}

// TestCommitsThatCannotBeCheckedOut have paths that git cannot write or that the platform does not
// take, and a file that is elsewhere.
func TestCommitsThatCannotBeCheckedOut(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 12345\n"
	for name, c := range map[string]struct{ path, words string }{
		"a name too long":   {strings.Repeat("x", 300), "longer than 255 bytes"},
		"too deep":          {strings.Repeat("a/", 500) + "f", "more than 100 directories"},
		"too deep for git":  {strings.Repeat("a/", 3000) + "f", ""},
		"a file in Git LFS": {"data/größe.bin", `the file "data/größe.bin" is in Git LFS`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework(""), ".gitattributes": "*.bin filter=lfs -text\n", "lfs.txt": pointer})
			repo.Git("update-index", "--add", "--cacheinfo", "100644,"+repo.Git("rev-parse", "HEAD:lfs.txt")+","+c.path)
			repo.Git("commit", "-q", "-m", "odd")
			wantFailure(t, a.builder(), newSpec(serveGit(t, repo, "")), build.ReasonSourceInvalid, "cannot be checked out", c.words)
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check.Must(t, err)
	return string(text)
}

func output(t *testing.T, env []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), args[0], args[1:]...)
	command.Env = env
	out, err := command.Output()
	check.Must(t, err)
	return string(out)
}
