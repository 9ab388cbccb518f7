package e2e_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestSecrets plants values in places from which they could leak: the server's own
// environment, the secrets of two deployments, and all other secrets that a server receives or
// generates.
func TestSecrets(t *testing.T) {
	t.Parallel()
	own, mine, theirs := "own-"+rand.Text(), "mine-"+rand.Text(), "theirs-"+rand.Text()
	// This machine serves one repository.
	on := newLocal(t.TempDir(), "--verbose", "--private-addresses")
	on.env = []string{"PLANTED=" + own}
	s := startServer(t, on)
	more := newPlants()
	defer watch(t, on, append(more.all(), own, mine, theirs, s.APIKey))()

	// The agent's commands send their environment to this test, because they may write no
	// files outside the server's directory. The agent also prints its environment.
	build, start := newEnvironmentReceiver(t), newEnvironmentReceiver(t)
	repo := agentRepository(t)
	repo.branch(t, "noting", agentConfig().with("build", build.command()).with("start", start.command()+"; env; exec ./agent"))
	s.deploy(t, repo, "main", secret{"THEIRS", theirs})
	agent := s.deploy(t, repo, "noting", secret{"MINE", mine})
	agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)

	everything := append(s.plant(t, more), own, mine, theirs)
	t.Run("a build gets neither the server's environment nor any secret", func(t *testing.T) {
		expectVariables(t, build.newest(), "", own, mine, theirs, s.APIKey)
	})
	t.Run("an agent gets its own secrets and no others", func(t *testing.T) {
		expectVariables(t, start.newest(), "MINE="+mine, own, theirs, s.APIKey)
	})
	t.Run("the server's directory and log hold no secret in clear", func(t *testing.T) {
		expectNowhere(t, on, everything...)
	})
	t.Run("the server's key is in the credentials alone", func(t *testing.T) {
		if found := holding(t, on, s.APIKey); len(found) != 1 || filepath.Base(found[0]) != "credentials.json" {
			t.Errorf("the key is in %v", found)
		}
	})
	t.Run("what was kept is kept sealed after a crash too", func(t *testing.T) {
		s.kill9(t)
		expectNowhere(t, on, everything...)
		s.restart(t)
		agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
		expectVariables(t, start.newest(), "MINE="+mine, own, theirs, s.APIKey)
		expectNowhere(t, on, everything...)
	})
	if *kind == "standalone" { // the keys of a stack are in KMS
		t.Run("everything is sealed anew, and the key before is retired", func(t *testing.T) {
			s.retireKey(t, on)
			agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
			expectVariables(t, start.newest(), "MINE="+mine, own, theirs, s.APIKey)
			expectNowhere(t, on, everything...)
		})
	}
	t.Run("credentials and keys are for their owner only", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(on.data(), "*.key"))
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no key (%v)", err)
		}
		for _, name := range append(files, filepath.Join(on.data(), "credentials.json")) {
			info, err := os.Stat(name)
			check.Must(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %s", name, info.Mode())
			}
		}
	})
}

// retireKey replaces the sealing key, as an operator does, and stops the server for the last
// step. Unused API keys prevent the last step.
func (s *server) retireKey(t *testing.T, on *local) {
	t.Helper()
	secrets := func(verb string) string {
		t.Helper()
		output, err := exec.CommandContext(t.Context(), built.slipway, "secrets", verb, "--data", on.data()).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", verb, err, output)
		}
		return string(output)
	}
	secrets("rotate")
	resealed := secrets("reseal")
	for _, kind := range []string{"deployment", "revision", "webhook", "git_credential", "auth_provider", "auth_token", "workspace_secret"} {
		if !strings.Contains("\n"+resealed, "\n"+kind+"\t") {
			t.Errorf("no %s was sealed anew: %s", kind, resealed)
		}
	}
	var issued struct{ Resources []struct{ ID, Role string } }
	s.call(t, http.StatusOK, "GET", "/v2/api-keys", nil, &issued)
	for _, key := range issued.Resources {
		if key.Role == "editor" {
			s.call(t, http.StatusNoContent, "DELETE", "/v2/api-keys/"+key.ID, nil, nil)
		}
	}
	if code, err := on.terminate(); code != 0 || err != nil {
		t.Fatalf("the server ended with %d (%v)", code, err)
	}
	s.restart(t)
	s.call(t, http.StatusOK, "GET", "/v2/api-keys", nil, nil) // this request stores the key again
	if code, err := on.terminate(); code != 0 || err != nil {
		t.Fatalf("the server ended with %d (%v)", code, err)
	}
	if output := secrets("retire"); output != "retired 1 keys\n" {
		t.Errorf("got %q", output)
	}
	s.restart(t)
}

// environmentReceiver receives the environments that a command sends.
type environmentReceiver struct {
	listener net.Listener

	mu sync.Mutex
	// sent holds the environments in the order in which they came.
	sent []string
}

func newEnvironmentReceiver(t *testing.T) *environmentReceiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	r := &environmentReceiver{listener: listener}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			text, err := io.ReadAll(conn)
			if err = errors.Join(err, conn.Close()); err != nil {
				t.Error(err)
			}
			r.mu.Lock()
			r.sent = append(r.sent, string(text))
			r.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return r
}

// command returns a shell command that sends its environment.
func (r *environmentReceiver) command() string {
	return fmt.Sprintf(`bash -c 'env >/dev/tcp/127.0.0.1/%d'`, r.listener.Addr().(*net.TCPAddr).Port)
}

// newest returns the environment that was sent last, a line for each variable, or "" if no
// environment was sent.
func (r *environmentReceiver) newest() string { return r.newestWith("") }

// newestWith returns the newest environment that has a line, such as "NAME=value".
func (r *environmentReceiver) newestWith(line string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, environment := range slices.Backward(r.sent) {
		if line == "" || strings.Contains("\n"+environment, "\n"+line+"\n") {
			return environment
		}
	}
	return ""
}

// forget drops the environments so far.
func (r *environmentReceiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

// expectVariables checks the environment that a command has sent.
func expectVariables(t *testing.T, environment, want string, forbidden ...string) {
	t.Helper()
	if !strings.Contains(environment, "PATH=") {
		t.Fatalf("the command has sent no environment: %q", environment)
	}
	if want != "" && !strings.Contains("\n"+environment, "\n"+want+"\n") {
		t.Errorf("%s is missing in\n%s", want, environment)
	}
	for _, value := range forbidden {
		if strings.Contains(environment, value) {
			t.Errorf("%s is in\n%s", value, environment)
		}
	}
}

func expectNowhere(t *testing.T, on *local, values ...string) {
	t.Helper()
	for _, value := range values {
		if found := holding(t, on, value); len(found) > 0 {
			t.Errorf("%s is in %v", value, found)
		}
	}
}

// holding lists the files of a server, including its log, that contain the value.
func holding(t *testing.T, on *local, value string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(on.dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(file)
		if shows(content, value) {
			found = append(found, file)
		}
		return err
	})
	check.Must(t, err)
	return found
}

// shows reports whether a text contains a value in one of its forms.
func shows(content []byte, value string) bool {
	return slices.ContainsFunc(forms(value), func(form []byte) bool { return bytes.Contains(content, form) })
}

// forms returns the texts in which a value can be read: unchanged, as a part of a URL, or within
// base64 text.
func forms(value string) [][]byte {
	all := [][]byte{[]byte(value), []byte(url.QueryEscape(value))}
	for before := range 3 { // the number of bytes before it in its base64 group
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, before), value...))
		all = append(all, []byte(encoded[(before*8+5)/6:len(encoded)-4]))
	}
	return all
}
