//go:build moto

package codebuild_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checked is what config.jq makes of a configuration file.
type checked struct {
	Problems, Remarks, Graphs, Build, Start []string
	Text                                    string
	Env                                     map[string]any
}

func check(t *testing.T, config, state, dotenv string) checked {
	t.Helper()
	command := exec.CommandContext(t.Context(), "jq", "-f", "config.jq", "--arg", "dir", "sub", "--arg", "dotenv_state", state, "--arg", "dotenv", dotenv)
	command.Stdin = strings.NewReader(config)
	var trouble bytes.Buffer
	command.Stderr = &trouble
	out, err := command.Output()
	if err != nil {
		t.Fatalf("jq: %v\n%s", err, trouble.Bytes())
	}
	var c checked
	must(t, json.Unmarshal(out, &c))
	return c
}

// The problems are those that the builder of one machine finds, in the same words.
func TestConfigurationProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		words  []string
	}{
		"all at once":        {`{"build": 5, "env": {"A": 1}}`, []string{"graphs: is missing", "build: must be a command", "start: is missing", "env.A: must be a string"}},
		"no graphs":          {`{"graphs": {}, "start": "x"}`, []string{"graphs: must be an object with at least one graph"}},
		"graphs is a list":   {`{"graphs": ["a:b"], "start": "x"}`, []string{"graphs: must be an object"}},
		"a bare path":        {`{"graphs": {"a": "agent.py"}, "start": "x"}`, []string{`graphs.a: must be "path/to/file:variable"`}},
		"no variable":        {`{"graphs": {"a": "agent.py:"}, "start": "x"}`, []string{`graphs.a: must be "path/to/file:variable"`}},
		"no file":            {`{"graphs": {"a": ":x"}, "start": "x"}`, []string{`graphs.a: must be "path/to/file:variable"`}},
		"graph is a number":  {`{"graphs": {"a": 1}, "start": "x"}`, []string{`graphs.a: must be "path/to/file:variable"`}},
		"graph without id":   {`{"graphs": {"": "a:b"}, "start": "x"}`, []string{"the id of a graph must not be empty"}},
		"graph outside":      {`{"graphs": {"a": "../../up.py:a"}, "start": "x"}`, []string{`graphs.a: the path "../../up.py" leaves the repository`}},
		"graph in and out":   {`{"graphs": {"a": "x/../../../up.py:a"}, "start": "x"}`, []string{"leaves the repository"}},
		"graph absolute":     {`{"graphs": {"a": "/etc/x:a"}, "start": "x"}`, []string{"leaves the repository"}},
		"a Python agent":     {`{"graphs": {"a": "a.py:a"}, "dependencies": ["."]}`, []string{"start: is missing; the field dependencies asks for the Python runtime"}},
		"a Node agent":       {`{"graphs": {"a": "a.ts:a"}, "node_version": "20"}`, []string{"start: is missing; the field node_version asks for the Node runtime"}},
		"start is null":      {`{"graphs": {"a": "a:a"}, "start": null}`, []string{"start: is missing; it must be the command that starts the agent"}},
		"start is empty":     {`{"graphs": {"a": "a:a"}, "start": " "}`, []string{"start: must not be empty"}},
		"start without args": {`{"graphs": {"a": "a:a"}, "start": []}`, []string{"start: must be a command"}},
		"start has a number": {`{"graphs": {"a": "a:a"}, "start": ["a", 1]}`, []string{"start: must be a command"}},
		"start has a NUL":    {`{"graphs": {"a": "a:a"}, "start": ["a", "\u0000"]}`, []string{"start: must not contain a NUL"}},
		"env is a list":      {`{"graphs": {"a": "a:a"}, "start": "x", "env": ["A=1"]}`, []string{"env: must be an object of strings"}},
		"bad names": {`{"graphs": {"a": "a:a"}, "start": "x", "env": {"1A": "", "HOST": "0.0.0.0", "SLIPWAY_INVOKE_TOKEN": "x", "N": null, "Z": "\u0000"}}`,
			[]string{"env.1A: is not a name", "env.HOST: is set by the platform", "env.SLIPWAY_INVOKE_TOKEN: is set by the platform", "env.N: must be a string", "env.Z: must not contain a NUL"}},
		"fine":             {`{"graphs": {"a": "../up.py:a", "b": {"path": "C:x:y"}}, "start": "x", "build": ["a", "b"], "env": {"A": ""}}`, nil},
		"null is absent":   {`{"graphs": {"a": "a:a"}, "start": "x", "build": null, "env": null}`, nil},
		"env file missing": {`{"graphs": {"a": "a:a"}, "start": "x", "env": "/etc/hosts"}`, []string{`env: the path "/etc/hosts" must be relative`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := check(t, c.config, "none", "")
			if len(got.Problems) != len(c.words) {
				t.Errorf("got %q, want %d problems", got.Problems, len(c.words))
			}
			for _, word := range c.words {
				if !strings.Contains(strings.Join(got.Problems, "\n"), word) {
					t.Errorf("%q is not among %q", word, got.Problems)
				}
			}
		})
	}
}

func TestEnvironmentFiles(t *testing.T) {
	t.Parallel()
	const config = `{"graphs": {"a": "a:a"}, "start": "x", "env": "conf/.env"}`
	got := check(t, config, "read", `# settings
PLAIN=one two # a comment
export EXPORTED = yes
EMPTY=
HASH=a#b
SINGLE='$kept "as" is\n'  # a comment
DOUBLE="line\nnext \"quoted\" \$5 \\"
PORT=9000`+"\r\n")
	want := map[string]any{
		"PLAIN": "one two", "EXPORTED": "yes", "EMPTY": "", "HASH": "a#b", "SINGLE": `$kept "as" is\n`, "DOUBLE": "line\nnext \"quoted\" $5 \\",
	}
	if diff := cmp.Diff(want, got.Env); diff != "" || len(got.Problems) > 0 {
		t.Errorf("problems %q, environment (-want +got):\n%s", got.Problems, diff)
	}
	for name, c := range map[string]struct{ state, text, problem, remark string }{
		"bad lines":  {"read", "A=1\nno assignment\nB=\"open\nC='x' y\n", "env: line 2 of conf/.env is not NAME=value|env: line 3 of conf/.env is not NAME=value|env: line 4 of conf/.env is not NAME=value", ""},
		"bad name":   {"read", "HOST=x", "env.HOST: is set by the platform", ""},
		"absent":     {"absent", "", "", "env: the file conf/.env is not in the repository; nothing is set from it"},
		"unreadable": {"wrong", "", `env: the file "conf/.env" cannot be read: it leaves the repository, is no file, or is too large`, ""},
	} {
		got := check(t, config, c.state, c.text)
		if strings.Join(got.Problems, "|") != c.problem || strings.Join(got.Remarks, "|") != c.remark {
			t.Errorf("%s: problems %q, remarks %q", name, got.Problems, got.Remarks)
		}
	}
}

// A shell that is not the agent would keep signals from it.
func TestTheStartCommandReplacesTheShell(t *testing.T) {
	t.Parallel()
	for start, want := range map[string][]string{
		`"./agent --port $PORT"`:   {"sh", "-c", "exec ./agent --port $PORT"},
		`"exec ./agent"`:           {"sh", "-c", "exec ./agent"},
		`"MODE=fast ./agent"`:      {"sh", "-c", "MODE=fast ./agent"},
		`"./prepare && ./agent"`:   {"sh", "-c", "./prepare && ./agent"},
		`"./agent > /dev/null"`:    {"sh", "-c", "./agent > /dev/null"},
		`"a\nb"`:                   {"sh", "-c", "a\nb"},
		`["./agent", "a; b", "c"]`: {"./agent", "a; b", "c"},
	} {
		if diff := cmp.Diff(want, check(t, `{"graphs": {"a": "a:a"}, "start": `+start+`}`, "none", "").Start); diff != "" {
			t.Errorf("start %s (-want +got):\n%s", start, diff)
		}
	}
}
