package framework_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestConfigInvalid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		words  []string
	}{
		"not JSON":         {"{\n  \"graphs\": oops\n}", []string{"framework.json is not a JSON object", "(line 2, column 13)"}},
		"not an object":    {`[]`, []string{"framework.json is not a JSON object"}},
		"all at once":      {`{"build": 5, "env": {"A": 1}}`, []string{"- graphs: is missing", "- build: must be a command", "- env.A: must be a string"}},
		"no graphs":        {`{"graphs": {}, "start": "x"}`, []string{"graphs: must be an object with at least one graph"}},
		"graphs is a list": {`{"graphs": ["a:b"], "start": "x"}`, []string{"graphs: must be an object"}},
		"a bare path":      {`{"graphs": {"a": "agent.py"}, "start": "x"}`, []string{`graphs.a: must be "path/to/file:variable"`}},
		"no variable":      {`{"graphs": {"a": "agent.py:"}, "start": "x"}`, []string{`graphs.a: must be "path/to/file:variable"`}},
		"graph is a number": {`{"graphs": {"a": 1}, "start": "x"}`,
			[]string{`graphs.a: must be "path/to/file:variable"`}},
		"graph without id":     {`{"graphs": {"": "a:b"}, "start": "x"}`, []string{"the id of a graph must not be empty"}},
		"graph outside":        {`{"graphs": {"a": "../up.py:a"}, "start": "x"}`, []string{`graphs.a: the path "../up.py" leaves the repository`}},
		"graph absolute":       {`{"graphs": {"a": "/etc/x:a"}, "start": "x"}`, []string{"leaves the repository"}},
		"an unknown language":  {`{"graphs": {"a": "a.rb:a"}}`, []string{`start: is missing; it must be the command that starts the agent, as the file "a.rb" is neither Python nor JavaScript`}},
		"two languages":        {`{"graphs": {"a": "a.py:a", "b": "b.ts:b"}}`, []string{"graphs: must be all Python or all JavaScript", "a configuration file and a deployment of its own"}},
		"Python too old":       {`{"graphs": {"a": "a.py:a"}, "python_version": "3.9"}`, []string{`python_version: must be "3.11" or newer`}},
		"Node too old":         {`{"graphs": {"a": "a.ts:a"}, "node_version": 18}`, []string{`node_version: must be "20" or newer`}},
		"version is a list":    {`{"graphs": {"a": "a.ts:a"}, "node_version": []}`, []string{"node_version: must be a string"}},
		"dependencies text":    {`{"graphs": {"a": "a.py:a"}, "dependencies": "."}`, []string{"dependencies: must be a list of requirements and directories"}},
		"dependency outside":   {`{"graphs": {"a": "a.py:a"}, "dependencies": ["x", "../.."]}`, []string{`dependencies[1]: the directory "../.." leaves the repository`}},
		"dependency is a flag": {`{"graphs": {"a": "a.py:a"}, "dependencies": ["--index-url=x", " ", "a\nb"]}`, []string{"dependencies[0]: must be a requirement", "dependencies[1]: must be", "dependencies[2]: must be"}},
		"start is null":        {`{"graphs": {"a": "a:a"}, "start": null}`, []string{"start: is missing; it must be the command that starts the agent"}},
		"start is empty":       {`{"graphs": {"a": "a:a"}, "start": " "}`, []string{"start: must not be empty"}},
		"start without args":   {`{"graphs": {"a": "a:a"}, "start": []}`, []string{"start: must be a command"}},
		"start has a NUL":      {`{"graphs": {"a": "a:a"}, "start": ["a", "\u0000"]}`, []string{"start: must not contain a NUL"}},
		"env is a list":        {`{"graphs": {"a": "a:a"}, "start": "x", "env": ["A=1"]}`, []string{"env: must be an object of strings"}},
		"bad names": {`{"graphs": {"a": "a:a"}, "start": "x", "env": {"1A": "", "HOST": "0.0.0.0", "SLIPWAY_INVOKE_TOKEN": "x", "N": null, "Z": "\u0000"}}`,
			[]string{"env.1A: is not a name", "env.HOST: is set by the platform", "env.SLIPWAY_INVOKE_TOKEN: is set by the platform", "env.N: must be a string", "env.Z: must not contain a NUL"}},
		"bad port": {`{"graphs": {"a": "a:a"}, "start": "x", "env": {"PORT": "65536"}}`, []string{"env.PORT: must be a number from 1 to 65535"}},
		"keys that are not served": {`{"graphs": {"a": "a:a"}, "start": "x", "auth": {"path": "./auth.py:auth"}, "http": {"app": "./app.py:app"},
			"encryption": {"path": "e.py:e"}, "ui": {"agent": "./ui.tsx"}, "ui_config": {"shared": ["react"]}, "image_distro": "alpine"}`,
			[]string{"- auth.path: only the platform's runtimes import it", "- http.app: only the platform's runtimes import it", "- encryption: ", "- ui: ", "- ui_config: ", "- image_distro: "}},
		"keys in other letters": {`{"graphs": {"a": {"path": "a:a", "description": ["A."]}}, "start": "x", "Auth": {}, "encryption ": {}}`,
			[]string{`- Auth: is not a key of the configuration file, did you mean "auth"?`, `did you mean "encryption"?`, "- graphs.a.description: must be a string"}},
		"keys of earlier releases": {`{"graphs": {"a": "a.py:a"}, "project_root": "..", "package": "x"}`,
			[]string{"- project_root: was a key of earlier releases of the public format: use source.root", "- package: was a key"}},
		"a key of the other language": {`{"graphs": {"a": "a.py:a"}, "node_version": "22"}`, []string{"- node_version: is only for graphs that the node runtime hosts. Remove it: a Python agent that starts programs of Node finds those of the server's machine"}},
		"env file bad":                {`{"graphs": {"a": "a:a"}, "start": "x", "env": "bad.env"}`, []string{"env: line 2 of bad.env is not NAME=value", "env: line 3 of bad.env"}},
		"env file absent":             {`{"graphs": {"a": "a:a"}, "start": "x", "env": "/etc/hosts"}`, []string{`env: the path "/etc/hosts" must be relative`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRefused(t, map[string]string{"framework.json": c.config, "bad.env": "A=1\nno assignment\nB=\"open\n"}, c.words...)
		})
	}
}

// TestEnvironmentFileElsewhere names files that a repository does not have, such as the file
// above the directory of an agent that is uploaded alone.
func TestEnvironmentFileElsewhere(t *testing.T) {
	t.Parallel()
	for value, remarks := range map[string]int{`"../.env"`: 1, `"./../../x/.env"`: 1, `".env"`: 1, `"sub/../.env"`: 1, `""`: 0, `null`: 0, `{}`: 0} {
		config, err := framework.Read(tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a:a"}, "start": "x", "env": ` + value + `}`}), "")
		if err != nil || len(config.Env) > 0 || len(config.Remarks) != remarks {
			t.Errorf("env %s: got %v, %q, %v; want %d remarks", value, config.Env, config.Remarks, err, remarks)
		}
	}
}

// TestConfigPath reads the files that paths name, with links in the repository and out of it.
func TestConfigPath(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"sub/framework.json": `{"graphs": {"a": "a:a"}, "start": "x"}`, "large.json": strings.Repeat(" ", 1<<20+1)})
	check.Must(t, os.Symlink("/etc", filepath.Join(dir, "away")))
	check.Must(t, os.Symlink("sub", filepath.Join(dir, "here")))
	for path, want := range map[string]struct{ reason, words string }{
		"":                    {build.ReasonConfigNotFound, `has no framework configuration file "framework.json"`},
		"nope/framework.json": {build.ReasonConfigNotFound, `"nope/framework.json"`},
		"../framework.json":   {build.ReasonConfigInvalid, "cannot be read"},
		"/etc/passwd":         {build.ReasonConfigInvalid, "cannot be read"},
		"away/passwd":         {build.ReasonConfigInvalid, "escapes"},
		"sub":                 {build.ReasonConfigInvalid, "is a directory"},
		"large.json":          {build.ReasonConfigInvalid, "larger than 1048576 bytes"},
		"sub/framework.json":  {},
		"here/framework.json": {},
		"./sub/../sub/./x/../../sub/framework.json": {},
	} {
		_, err := framework.Read(dir, path)
		var got build.Failure
		if failure, ok := errors.AsType[*build.Failure](err); ok {
			got = *failure
		} else {
			check.Must(t, err)
		}
		if got.Reason != want.reason || !strings.Contains(got.Message, want.words) {
			t.Errorf("%q: got %q, %q; want %q, %q", path, got.Reason, got.Message, want.reason, want.words)
		}
	}
}

// TestStartCommandReplacesTheShell checks that no process of the agent is a child of a shell: so it
// is stopped with its server, however the server ends.
func TestStartCommandReplacesTheShell(t *testing.T) {
	t.Parallel()
	for start, want := range map[string][]string{
		`"./agent --port $PORT"`:   {"sh", "-c", "exec ./agent --port $PORT"},
		`"exec ./agent"`:           {"sh", "-c", "exec ./agent"},
		`"MODE=fast ./agent"`:      {"sh", "-c", "MODE=fast ./agent"},
		`"./prepare && ./agent"`:   {"sh", "-c", "./prepare && ./agent"},
		`"./agent > /dev/null"`:    {"sh", "-c", "./agent > /dev/null"},
		`["./agent", "a; b", "c"]`: {"./agent", "a; b", "c"},
	} {
		config, err := framework.Read(tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a:a"}, "start": ` + start + `}`}), "")
		check.Must(t, err)
		if diff := cmp.Diff(want, config.Start); diff != "" {
			t.Errorf("start %s (-want +got):\n%s", start, diff)
		}
	}
}

// TestEncryption reads the key where the platform asks the repository's own encryption.
func TestEncryption(t *testing.T) {
	t.Parallel()
	python := `{"dependencies": ["."], "graphs": {"a": "./a.py:a"}, "encryption": %}`
	files := func(text, value string) map[string]string {
		return map[string]string{"framework.json": strings.Replace(text, "%", value, 1), "requirements.txt": "", "package.json": "{}", "a.py": "", "own.py": ""}
	}
	for value, want := range map[string]string{`{"path": "./own.py:e"}`: "./own.py:e", `null`: "", `{}`: ""} {
		config, err := framework.Read(tree(t, files(python, value)), "", framework.OfferEncryption)
		if err != nil || config.Encryption != want {
			t.Errorf("%s: got %q, %v", value, config.Encryption, err)
		}
	}
	for _, c := range []struct {
		text, value, words string
		offers             []framework.Offer
	}{
		{python, `{"path": "./own.py:e"}`, "- encryption: the platform encrypts nothing with a key, and with code of the repository only on one machine", nil},
		{python, `{"path": "./own.py"}`, "- encryption.path: must be", []framework.Offer{framework.OfferEncryption}},
		{python, `{"path": "./own.py:e", "key": "k"}`, "- encryption.key: is not a key of encryption", []framework.Offer{framework.OfferEncryption}},
		{python, `"./own.py:e"`, "- encryption: must be an object", []framework.Offer{framework.OfferEncryption}},
		{`{"graphs": {"a": "./a.ts:a"}, "encryption": %}`, `{"path": "./own.ts:e"}`, "- encryption: is only for graphs that the python runtime hosts", []framework.Offer{framework.OfferEncryption}},
		{`{"graphs": {"a": "a"}, "start": ["./agent"], "encryption": %}`, `{"path": "./own.py:e"}`, "- encryption: is only for graphs that the python runtime hosts", []framework.Offer{framework.OfferEncryption}},
	} {
		if _, err := framework.Read(tree(t, files(c.text, c.value)), "", c.offers...); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s %s: got %v, want %q", c.text, c.value, err, c.words)
		}
	}
}

// TestSettingsHaveALimit names the key that takes the most.
func TestSettingsHaveALimit(t *testing.T) {
	t.Parallel()
	read := func(header, path int) error {
		_, err := framework.Read(tree(t, map[string]string{"pyproject.toml": "", "framework.json": fmt.Sprintf(
			`{"graphs": {"a": "a.py:a"}, "dependencies": ["."], "webhooks": {"headers": {"X": %q}}, "auth": {"path": %q}}`,
			strings.Repeat("x", header), "./"+strings.Repeat("a", path)+".py:auth")}), "")
		return err
	}
	if err := read(15<<10, 10); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{"webhooks": read(17<<10, 10), "auth": read(10, 17<<10)} {
		if err == nil || !strings.Contains(err.Error(), "- "+name+": the settings of auth, checkpointer, http, store, ui and webhooks take 17") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
