package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/demo"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/test/check"
)

// record is a Printer that keeps the events.
type record struct {
	events []output.Event
	shown  func(output.Event)
}

func (r *record) Show(event output.Event) {
	if r.events = append(r.events, event); r.shown != nil {
		r.shown(event)
	}
}

func (r *record) Close() error { return nil }

func (r *record) kinds() []string {
	var kinds []string
	for _, event := range r.events {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

func TestDemo(t *testing.T) {
	t.Parallel()
	s, progress := example(), &record{}
	config := s.serve(t)
	config.Progress = progress
	check.Must(t, demo.Run(t.Context(), config))
	want := []string{
		"server", "repository", "deployment", "status", "waiting", "status", "thread", "run", "message", "message", "token", "token", "run", "run_end",
		"token", "run_end", "state", "deleted", "result",
	}
	if diff := cmp.Diff(want, progress.kinds()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !s.wasDeleted() {
		t.Error("the deployment is not deleted")
	}
}

// TestAnotherUserClonesTheRepository checks the modes of the repository: a server that is root
// clones as a user of the workspace. Users who do not know the URL do not find the repository.
func TestAnotherUserClonesTheRepository(t *testing.T) {
	t.Parallel()
	s := example()
	config := s.serve(t)
	looked := false
	config.Progress = &record{shown: func(event output.Event) {
		if event.Kind != output.KindRepository {
			return
		}
		looked = true
		repository := strings.TrimPrefix(event.URL, "file://")
		for dir := filepath.Dir(repository); dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o711 {
				t.Errorf("%s has the mode %v (%v)", dir, info.Mode(), err)
			}
		}
		check.Must(t, filepath.WalkDir(repository, func(name string, entry fs.DirEntry, err error) error {
			git, inside := strings.CutPrefix(name, filepath.Join(repository, ".git"))
			if name != repository && !inside || git == "/COMMIT_EDITMSG" {
				return err // a clone does not read these
			}
			info, failed := entry.Info()
			wanted := fs.FileMode(0o004)
			if entry.IsDir() {
				wanted = 0o005
			}
			if err := errors.Join(err, failed); err != nil || info.Mode()&wanted != wanted {
				t.Errorf("%s has the mode %v (%v)", name, info.Mode(), err)
			}
			return err
		}))
	}}
	check.Must(t, demo.Run(t.Context(), config))
	if !looked {
		t.Error("no repository was shown")
	}
}

// The errors that a server may make, and the texts that report them.
func TestWrongThreads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*stub)
		want  string
	}{
		"run 1 not interrupted": {func(s *stub) { s.first = "success" }, `run 1 is "success", not interrupted`},
		"partial is lost":       {func(s *stub) { s.messages = append(s.messages[:3:3], s.messages[4:]...) }, `"I have looked" was shown and is not in the thread`},
		"partial is cut":        {func(s *stub) { s.messages[3] = partial("a2", "I have") }, `"I have looked" was shown, "I have" is in the thread`},
		"partial is not marked": {func(s *stub) { s.messages[3] = text("ai", "a2", "I have looked") }, `"I have looked" is not marked as incomplete`},
		"a question is twice":   {func(s *stub) { s.messages = append(s.messages[:1:1], s.messages...) }, "it is [human, human, "},
		"a question is another": {func(s *stub) { s.messages[4] = text("human", "h2", "hello") }, `the questions in it are ["what's the weather in sf?" "hello"]`},
		"no answer":             {func(s *stub) { s.messages = s.messages[:7] }, "it is [human, ai tool call, tool, ai (incomplete), human, ai tool call, tool], not"},
		"joined something else": {func(s *stub) { s.joined = []any{text("ai", "x", "x")} }, "joining run 2 answered [ai], the thread's state is [human, "},
		"ends too early":        {func(s *stub) { s.tokens = []string{"I"} }, "run 1 ended after 1 tokens of its answer, before it could be interrupted after 2 (--interrupt-after)"},
		"rollout fails": {func(s *stub) {
			s.statuses = []map[string]any{{"status": "BUILD_FAILED", "status_reason": "Why", "status_message": "Words."}}
		}, "revision r: BUILD_FAILED: Why: Words."},
		"rollout is overtaken": {func(s *stub) { s.statuses = []map[string]any{{"status": "SKIPPED"}} }, "revision r: SKIPPED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := example()
			c.spoil(s)
			config := s.serve(t)
			config.Progress = &record{}
			err := demo.Run(t.Context(), config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !s.wasDeleted() {
				t.Error("the deployment is left behind")
			}
		})
	}
}

func TestOtherRepositoryMayAnswerInItsOwnWay(t *testing.T) {
	t.Parallel()
	s := example()
	s.messages = append(s.messages[:1:1], s.messages[3], s.messages[4], s.messages[7]) // no tools
	config := s.serve(t)
	config.Progress, config.Repo, config.Ref = &record{}, "https://git.example.com/agent.git", "main"
	if err := demo.Run(t.Context(), config); err != nil {
		t.Error(err)
	}
	s = example()
	s.messages = s.messages[:7]
	config = s.serve(t)
	config.Progress, config.Repo = &record{}, "https://git.example.com/agent.git"
	if err := demo.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), "it does not end with an answer") {
		t.Errorf("got %v, want that there is no answer", err)
	}
}

// TestKeepLeavesTheDeployment, and no directory if the demo has put nothing into its directory.
func TestKeepLeavesTheDeployment(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s, progress := example(), &record{}
	config := s.serve(t)
	config.Progress, config.Keep = progress, true
	config.Repo = "https://git.example.com/agent.git"
	check.Must(t, demo.Run(t.Context(), config))
	if kinds := strings.Join(progress.kinds(), " "); s.wasDeleted() || !strings.Contains(kinds, "kept") {
		t.Errorf("deleted %v, events %s, want it kept", s.wasDeleted(), kinds)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("the demo has left %v (%v)", left, err)
	}
}

func TestWhatCannotBeDeletedIsNamed(t *testing.T) {
	t.Parallel()
	s, progress := example(), &record{}
	s.undeletable = true
	config := s.serve(t)
	config.Progress = progress
	err := demo.Run(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "500 Internal Server Error: out of order") {
		t.Errorf("got %v, want the server's words", err)
	}
	if kinds := strings.Join(progress.kinds(), " "); !strings.Contains(kinds, "kept") {
		t.Errorf("events %s, want one that says what is kept", kinds)
	}
}

func TestWaitTimeout(t *testing.T) {
	t.Parallel()
	s := example()
	s.statuses = s.statuses[:1]
	config := s.serve(t)
	config.Progress, config.WaitTimeout, config.Repo = &record{}, 2*time.Second, "https://git.example.com/agent.git"
	err := demo.Run(t.Context(), config)
	if timeout, ok := errors.AsType[*exit.TimeoutError](err); !ok || timeout.Error() != "revision r is still BUILDING after 2s (--wait-timeout)" {
		t.Errorf("got %v, want a timeout error that says what is going on", err)
	}
	if !s.wasDeleted() {
		t.Error("the deployment is left behind")
	}
}

func TestInterruptedByTheUser(t *testing.T) {
	t.Parallel()
	s := example()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config := s.serve(t)
	config.Progress = &record{shown: func(event output.Event) {
		if event.Kind == output.KindToken {
			cancel()
		}
	}}
	if err := demo.Run(ctx, config); !errors.Is(err, exit.ErrInterrupted) {
		t.Errorf("got %v, want ErrInterrupted", err)
	}
	if !s.wasDeleted() {
		t.Error("the deployment is left behind")
	}
}

// The text of an agent or a repository must not move the cursor, for any reader.
func TestTextIsPlain(t *testing.T) {
	t.Parallel()
	s := example()
	s.tokens = []string{"\x1b[2J", "\r"}
	s.messages[3] = partial("a2", "\x1b[2J\r")
	s.messages[6] = text("tool", "t2", "a\x1b[31m\nb")
	config := s.serve(t)
	var data, shown bytes.Buffer
	config.Progress = output.NewText(&data, &shown, false, false)
	check.Must(t, demo.Run(t.Context(), config))
	for name, text := range map[string]string{"data": data.String(), "progress": shown.String()} {
		if strings.ContainsAny(text, "\x1b\r") || !strings.HasSuffix(text, "\n") {
			t.Errorf("%s is not plain: %q", name, text)
		}
	}
	if want := "tool   a[31m\n       b\n"; !strings.Contains(data.String(), want) {
		t.Errorf("got %q, want %q in it", data.String(), want)
	}
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	s := example()
	config := s.serve(t)
	var out bytes.Buffer
	config.Progress = output.NewJSON(&out)
	check.Must(t, demo.Run(t.Context(), config))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines {
		var event output.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.Kind == "" || event.Time.IsZero() {
			t.Errorf("not an event: %s (%v)", line, err)
		}
		if event.Kind == output.KindWaiting {
			t.Errorf("a line within %s of another says that nothing happened", 10*time.Second)
		}
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, `"event":"result"`) || !strings.Contains(last, `"status":"succeeded"`) {
		t.Errorf("the last line is %s", last)
	}
}

// The output reports every error of a request, with its place.
func TestRefusalsAreSentences(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("X-Request-Id", "q1")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"detail": [{"loc": ["body", "secrets", 0, "name"], "msg": "Field required", "type": "missing"}, {"loc": ["body"], "msg": "Bad", "type": "x"}]}`)
		}
	}))
	t.Cleanup(server.Close)
	config := demo.Config{
		Server: client.Server{URL: server.URL}, Repo: "https://git.example.com/agent.git", InterruptAfter: 1, WaitTimeout: time.Minute, Progress: &record{},
	}
	want := "POST /v2/deployments: 422 Unprocessable Entity: body.secrets.0.name: Field required; body: Bad (request q1)"
	if err := demo.Run(t.Context(), config); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAMissingAgentIsNamedFirst checks that the demo asks, and starts, no server for an agent that
// is not there.
func TestAMissingAgentIsNamedFirst(t *testing.T) {
	t.Parallel()
	progress := &record{}
	config := example().serve(t)
	config.Progress, config.Agent = progress, t.TempDir()
	err := demo.Run(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "there is no agent at "+config.Agent) {
		t.Errorf("got %v, want that there is no agent", err)
	}
	if kinds := strings.Join(progress.kinds(), " "); kinds != "result" {
		t.Errorf("events %s, want only the result", kinds)
	}
}
