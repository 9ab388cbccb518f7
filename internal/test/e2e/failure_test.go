package e2e_test

import (
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// unmended limits the time until a failure is reported that does not go away by waiting.
const unmended = time.Minute

// deaf starts an agent that takes its port, so that no other program on the machine can answer
// there, and answers nothing.
const deaf = `exec python3 -c '
import os, socket, time
port = socket.create_server((os.environ["HOST"], int(os.environ["PORT"])))
time.sleep(600)'`

// TestFailureOfAFirstRevision tests the failures that prevent a deployment from ever being
// served.
func TestFailureOfAFirstRevision(t *testing.T) {
	t.Parallel()
	s := shared(t).server
	repo := agentRepository(t)
	image := creation("", "")
	image["source"] = "external_docker"
	image["source_config"] = map[string]any{}
	image["source_revision_config"] = map[string]any{"image_uri": "localhost/no/such:image"}
	for name, c := range map[string]struct {
		body           map[string]any
		status, reason string
		words          []string
	}{
		"the repository does not exist": {
			creation("file:///no/such/repository", "main"), "BUILD_FAILED", "REPOSITORY_UNREACHABLE", []string{"file:///no/such/repository"},
		},
		"nobody answers at the repository's address": {
			creation("http://127.0.0.1:1/repository.git", "main"), "BUILD_FAILED", "REPOSITORY_UNREACHABLE", []string{"127.0.0.1"},
		},
		"the branch does not exist": {
			creation(repo.url(), "no-such-branch"), "BUILD_FAILED", "REF_NOT_FOUND", []string{"no-such-branch"},
		},
		"the tag does not exist": {
			creation(repo.url(), "refs/tags/v99"), "BUILD_FAILED", "REF_NOT_FOUND", []string{"v99"},
		},
		"there is no container engine": {image, "DEPLOY_FAILED", "NO_CONTAINER_ENGINE", []string{"container engine"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			d, created := s.create(t, c.body)
			d.awaitFailed(t, value(created.LatestRevision), c.status, c.reason, c.words...)
			if took := time.Since(began); took > unmended {
				t.Errorf("it took %s to say so", took)
			}
			if got := d.get(t); got.ActiveRevision != nil {
				t.Errorf("a revision that failed is active: %+v", got)
			}
			s.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
		})
	}
}

// TestABuildDoesNotReachTheServersFiles has a repository's build search for the key of the
// workspace.
func TestABuildDoesNotReachTheServersFiles(t *testing.T) {
	t.Parallel()
	s := shared(t).server
	on, ok := s.target.(*local)
	if !ok {
		t.Fatal("the server is not on this machine")
	}
	repo, file := newRepository(t), filepath.Join(on.data(), "credentials.json")
	repo.write(t, "framework.json", agentConfig().with("build", []string{"cat", file}).with("start", []string{"false"}))
	repo.commit(t)
	d, created := s.create(t, creation(repo.url(), "main"))
	if child.Confines() {
		d.awaitFailed(t, value(created.LatestRevision), "BUILD_FAILED", "BUILD_COMMAND_FAILED", file, "Permission denied")
	} else {
		d.awaitStatus(t, value(created.LatestRevision), "DEPLOY_FAILED")
	}
	s.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
}

// TestFailureOfALaterRevision tests the failures that must not disturb the served revision.
func TestFailureOfALaterRevision(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--ready-limit", "5s")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { taken.Close() })
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	repo := agentRepository(t)
	for name, c := range map[string]struct {
		branch         string
		write          func()
		status, reason string
		words          []string
		cause, remedy  string
	}{
		"the ref does not exist": {
			cause: "The branch or tag does not exist.", remedy: "--ref",
			branch: "no-such-branch", status: "BUILD_FAILED", reason: "REF_NOT_FOUND", words: []string{"no-such-branch"},
		},
		"there is no framework.json": {
			cause: "The framework configuration file is not where it was looked for.", remedy: "--config",
			branch: "bare", status: "BUILD_FAILED", reason: "CONFIG_NOT_FOUND", words: []string{"framework.json"},
			write: func() { repo.git(t, "rm", "--quiet", "--force", "framework.json") },
		},
		"framework.json is not JSON": {
			cause: "framework.json", remedy: "",
			branch: "malformed", status: "BUILD_FAILED", reason: "CONFIG_INVALID", words: []string{"framework.json", "line 2"},
			write: func() { repo.write(t, "framework.json", "{\n  oops\n}") },
		},
		"framework.json lacks what it needs": {
			cause: "framework.json", remedy: "",
			branch: "incomplete", status: "BUILD_FAILED", reason: "CONFIG_INVALID", words: []string{"graphs: ", "start: ", "env.HOST: "},
			write: func() {
				repo.write(t, "framework.json", framework{"start": "", "env": map[string]string{"HOST": "here"}})
			},
		},
		"the build fails": {
			cause: "The build command failed.", remedy: "on your machine",
			branch: "unbuildable", status: "BUILD_FAILED", reason: "BUILD_COMMAND_FAILED",
			words: []string{"model.go:7: undefined: answer", "code 3"},
			write: func() {
				repo.write(t, "framework.json", agentConfig().with("build", "echo model.go:7: undefined: answer >&2; exit 3"))
			},
		},
		"the agent never answers its health check": {
			cause: "The agent was started, and never answered GET /ping.", remedy: "readiness_timeout_seconds",
			branch: "deaf", status: "DEPLOY_FAILED", reason: "NOT_READY", words: []string{"/ping", "still warming up"},
			write: func() {
				repo.write(t, "framework.json", agentConfig().with("start", "echo still warming up; "+deaf))
			},
		},
		"the agent ends at once": {
			cause: "The agent ends when it is started.", remedy: "on your machine",
			branch: "short", status: "DEPLOY_FAILED", reason: "START_FAILED", words: []string{"code 7", "no model is configured"},
			write: func() {
				repo.write(t, "framework.json", agentConfig().with("start", "echo no model is configured >&2; exit 7"))
			},
		},
		"a line of a source is wrong": {
			cause: "./main.go:7 does not compile: undefined: answer.", remedy: "that line",
			branch: "uncompiled", status: "BUILD_FAILED", reason: "BUILD_COMMAND_FAILED", words: []string{"main.go:7"},
			write: func() {
				repo.write(t, "go.mod", "module agent\n\ngo 1.26\n")
				repo.write(t, "main.go", "package main\n\nfunc main() {\n\t// The answer\n\t// is not defined.\n\t_ =\n\t\tanswer\n}\n")
				repo.write(t, "framework.json", agentConfig().with("build", "go build -o agent ."))
			},
		},
		"a secret is missing": {
			cause: "The variable MODEL_KEY is not set.", remedy: "--secret MODEL_KEY",
			branch: "secretless", status: "DEPLOY_FAILED", reason: "START_FAILED", words: []string{"code 1", "MODEL_KEY"},
			write: func() {
				repo.write(t, "framework.json", agentConfig().with("start", `exec python3 -c 'import os; os.environ["MODEL_KEY"]'`))
			},
		},
		"what listens is no agent": {
			branch: "foreign", status: "DEPLOY_FAILED", reason: "NO_CONTRACT", words: []string{"does not speak the container contract", "/ping", "404"},
			write: func() {
				repo.write(t, "framework.json", agentConfig().with("start", `exec python3 -m http.server --bind "$HOST" "$PORT"`))
			},
		},
		"the agent's program is missing": {
			cause: "The agent ends when it is started", remedy: "",
			branch: "missing", status: "DEPLOY_FAILED", reason: "START_FAILED", words: []string{"no-such-program"},
			write: func() { repo.write(t, "framework.json", agentConfig().with("start", []string{"./no-such-program"})) },
		},
		"the agent's port is taken": {
			branch: "taken", status: "DEPLOY_FAILED", reason: "PORT_TAKEN", words: []string{port},
			write: func() {
				repo.write(t, "framework.json", agentConfig().with("env", map[string]string{"PORT": port}))
			},
		},
	} {
		if c.write != nil {
			repo.branch(t, c.branch, agentConfig(), c.write)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := s.deploy(t, repo, "main")
			good := value(d.get(t).ActiveRevision)
			began := time.Now()
			failed := d.patch(t, c.branch)
			d.awaitFailed(t, failed, c.status, c.reason, c.words...)
			if took := time.Since(began); took > unmended {
				t.Errorf("it took %s to say so", took)
			}
			d.wantExplained(t, failed, c.cause, c.remedy)
			if got := d.get(t); value(got.ActiveRevision) != good {
				t.Errorf("the active revision is %s, want %s", value(got.ActiveRevision), good)
			}
			d.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
			d.awaitDeployed(t, d.patch(t, "refs/tags/v2"))
			d.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
		})
	}
}

// TestADeploymentHasItsOwnTimeToBecomeHealthy: less or more than the server's own limit.
func TestADeploymentHasItsOwnTimeToBecomeHealthy(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--ready-limit", "4s")
	repo := agentRepository(t)
	repo.branch(t, "deaf", agentConfig().with("start", deaf))
	repo.branch(t, "slow", agentConfig().with("start", "sleep 6; exec ./agent"))
	limited := func(ref string, limit int) (*deployment, string) {
		body := creation(repo.url(), ref)
		body["readiness_timeout_seconds"] = limit
		d, created := s.create(t, body)
		return d, value(created.LatestRevision)
	}
	impatient, deaf := limited("deaf", 10)
	patient, slow := limited("slow", 600)
	impatient.awaitFailed(t, deaf, "DEPLOY_FAILED", "NOT_READY", "within 10s")
	patient.awaitDeployed(t, slow)
	// Agents that start from now on have another limit, and running agents are not changed.
	s.call(t, http.StatusOK, "PATCH", patient.path, map[string]any{"readiness_timeout_seconds": 11}, nil)
	if got := value(patient.get(t).LatestRevision); got != slow {
		t.Errorf("the newest revision is %s, want %s", got, slow)
	}
	patient.awaitFailed(t, patient.patch(t, "deaf"), "DEPLOY_FAILED", "NOT_READY", "within 11s")
	patient.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
}
