//go:build repositories

package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/providers"
)

var (
	mirrors = flag.String("mirrors", "", "where local mirrors of the repositories are: a path in which {owner} and {name} stand for a repository's")
	only    = flag.String("only", "", "expression for the repositories that are tried")
	update  = flag.Bool("update", false, "write the results into infra/runtimes/COMPATIBILITY.md")
)

// buildsAtOnce is how many repositories are built and driven at a time.
const buildsAtOnce = 2

// public is a public repository of the list, with what its graphs need.
type public struct {
	// URL and Commit say what is deployed, and Config which of its configuration files.
	URL    string `json:"url"`
	Commit string `json:"commit"`
	Config string `json:"config"`
	// Graph is the graph that is run; the default is the only one. In its Input, {question}
	// stands for a question; the default is one message.
	Graph string          `json:"graph"`
	Input json.RawMessage `json:"input"`
	// Runs holds more members of the requests that create runs.
	Runs map[string]any `json:"runs"`
	// Headers are sent with each request to the agent.
	Headers map[string]string `json:"headers"`
	// Answer is the answer to a question of the graph.
	Answer any `json:"answer"`
	// Secrets are more variables of the agent; {models} stands for the address of the models.
	Secrets map[string]string `json:"secrets"`
	// Because is the cause of a known failure that is not in our hands.
	Because string `json:"because"`
}

var repositoryURL = regexp.MustCompile(`^https://github\.com/([\w.-]+)/([\w.-]+)$`)

// owner returns the owner and the name of the repository.
func (p public) owner() (owner, name string) {
	found := repositoryURL.FindStringSubmatch(p.URL)
	return found[1], found[2]
}

// title names the repository in the table, with the folder of its configuration file.
func (p public) title() string {
	owner, name := p.owner()
	if dir := filepath.Dir(p.Config); dir != "." {
		name += "/" + dir
	}
	if file := filepath.Base(p.Config); file != "langgraph.json" {
		name += "/" + file
	}
	return owner + "/" + name
}

// publicRepositories reads the list.
func publicRepositories(t *testing.T) []public {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "repositories", "list.json"))
	check.Must(t, err)
	var list []public
	decode(t, string(text), &list)
	for i := range list {
		if !repositoryURL.MatchString(list[i].URL) {
			t.Fatalf("the list has the repository %q", list[i].URL)
		}
		if list[i].Config == "" {
			list[i].Config = "langgraph.json"
		}
	}
	return list
}

// TestRepositories deploys the public repositories of the list, unchanged, and drives them with a
// model that has fixed answers. It compares the results with the table, or writes them there.
func TestRepositories(t *testing.T) {
	table := readTable(t)
	models := httptest.NewServer(services(t))
	t.Cleanup(models.Close)
	s := newAgentServer(t)
	chosen := regexp.MustCompile(*only)
	places := make(chan struct{}, buildsAtOnce)
	t.Run("side by side", func(t *testing.T) {
		for _, p := range publicRepositories(t) {
			if !chosen.MatchString(p.title()) {
				continue
			}
			t.Run(p.title(), func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				got := s.try(t, p, models.URL)
				t.Logf("%+v", got)
				switch {
				case strings.Contains(got.why, " is not run, because it is at "):
					t.Error("It cannot be compared: a tool is where the users of agents may not run it. " +
						"Have the repository, or the tool, in a folder that all may enter.")
				case got.reason == "RUNTIME_MISSING":
					t.Log("It cannot be compared: this machine has no such runtime, and cannot get it.")
				case *update:
					table.put(t, got)
				default:
					table.compare(t, got)
				}
			})
		}
	})
}

// services returns the services that graphs reach: the models, and the user of any token, as
// Supabase shows it to agents that authenticate their users there.
func services(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", providers.New(func(method, path string) { t.Logf("the models were asked for %s %s", method, path) }))
	mux.HandleFunc("GET /auth/v1/user", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id": "00000000-0000-4000-8000-000000000001", "aud": "authenticated", "role": "authenticated", "email": "ada@example.com",
			"app_metadata": {}, "user_metadata": {}, "identities": [], "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}`)
	})
	return mux
}

// result is the row of a repository. A cell is yes, no, a dash if there was nothing to do, or a
// word that says more.
type result struct {
	title, url, commit                                             string
	built, deployed, described, ran, resumed, interrupted, seconds string
	why                                                            string
	// reason is the reason of the failed revision, "" if it is deployed.
	reason string
}

// try deploys a repository and drives its graph as far as it comes.
func (s *server) try(t *testing.T, p public, models string) result {
	t.Helper()
	r := result{title: p.title(), url: p.URL, commit: p.Commit, built: "no", deployed: "no", described: "-", ran: "-", resumed: "-", interrupted: "-", seconds: "-"}
	repo := p.repository(t)
	body := creation(repo.url(), "main", p.secrets(models)...)
	body["source_revision_config"] = map[string]any{"repo_ref": "main", "langgraph_config_path": p.Config}
	begun := time.Now()
	d, created := s.create(t, body)
	defer d.drop(t)
	var last revisionBody
	eventually(t, "the revision has ended", func() (bool, any) {
		last = d.revision(t, value(created.LatestRevision))
		return last.failed() || last.Status == "DEPLOYED", last
	})
	if last.Status != "BUILD_FAILED" {
		r.built = "yes"
	}
	if last.Status != "DEPLOYED" {
		t.Logf("%s: %s", value(last.Reason), value(last.Text))
		r.reason = value(last.Reason)
		r.why = p.cause(r.reason+":", value(last.Text))
		return r
	}
	r.deployed, r.seconds = "yes", fmt.Sprintf("%.0f", time.Since(begun).Seconds())
	v := visitor{d, p}
	for _, part := range []struct {
		cell *string
		try  func(ctx context.Context) (string, error)
	}{{&r.described, v.describe}, {&r.ran, v.run}, {&r.resumed, v.resume}, {&r.interrupted, v.interrupt}} {
		if part.cell != &r.ran && part.cell != &r.described && r.ran != "yes" {
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		verdict, err := part.try(ctx)
		cancel()
		if *part.cell = verdict; err != nil {
			t.Log(err)
			*part.cell, r.why = "no", p.cause("", err.Error())
		}
	}
	return r
}

// drop deletes the deployment, with its builds.
func (d *deployment) drop(t *testing.T) {
	t.Helper()
	if _, err := d.server.do(context.WithoutCancel(t.Context()), "DELETE", d.path, nil); err != nil {
		t.Error(err)
	}
}

// secrets returns the variables of the agent: the keys and addresses of the providers.
func (p public) secrets(models string) []secret {
	all := map[string]string{
		"OPENAI_API_KEY": "key-of-nobody", "OPENAI_BASE_URL": models + "/v1", "OPENAI_API_BASE": models + "/v1",
		"ANTHROPIC_API_KEY": "key-of-nobody", "ANTHROPIC_BASE_URL": models, "ANTHROPIC_API_URL": models,
		"TAVILY_API_KEY": "tvly-key-of-nobody",
	}
	maps.Copy(all, p.Secrets)
	var list []secret
	for name, text := range all {
		list = append(list, secret{name, strings.ReplaceAll(text, "{models}", models)})
	}
	return list
}

// causeLength is how many letters the table says of the cause of a failure.
const causeLength = 180

// mentions matches the lines of a failed command's output that say why it failed.
var mentions = regexp.MustCompile(`(?i)error|cannot|not found`)

// changing matches the parts of a text that differ between machines or runs: addresses, paths
// outside the repository, and numbers of objects. Its group is what comes before such a part.
var changing = regexp.MustCompile(`[a-z]+://\S+|0x[0-9a-f]{6,}|(^|[^\w.@/-])(?:(?:/[\w.@-]+)*/src/|\(?/(?:[\w.@+-]+/){2,}[^\s'")]*\)?)`)

// cause returns what the table says of a failure: one line, without what changes from run to run.
func (p public) cause(reason, text string) string {
	if _, output, ok := strings.Cut(text, "Its last output:\n"); ok {
		text, _, _ = strings.Cut(output, "\n")
		for line := range strings.Lines(output) {
			if mentions.MatchString(line) {
				text = line
				break
			}
		}
	}
	text = changing.ReplaceAllString(strings.ReplaceAll(text, "|", "/"), "$1")
	text = strings.Join(strings.Fields(reason+" "+text), " ")
	if cut := []rune(text); len(cut) > causeLength {
		text = string(cut[:causeLength]) + "..."
	}
	if p.Because != "" {
		text = p.Because + ": " + text
	}
	return text
}
