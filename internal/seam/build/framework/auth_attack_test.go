package framework_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// tree writes files into a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		check.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	return dir
}

// wantRefused reads a configuration, which every builder does first, and checks that it is
// refused.
func wantRefused(t *testing.T, files map[string]string, words ...string) {
	t.Helper()
	config, err := framework.Read(tree(t, files), "")
	failure, ok := errors.AsType[*build.Failure](err)
	if !ok || failure.Reason != build.ReasonConfigInvalid {
		t.Fatalf("got %+v, %v, want it refused", config, err)
	}
	for _, word := range words {
		if !strings.Contains(failure.Message, word) {
			t.Errorf("the message lacks %q:\n%s", word, failure.Message)
		}
	}
}

// TestAttackAuthIsNeverOverlooked reads repositories that ask for their own authentication in every
// way that the public server understands. A repository is read with its authentication, or refused.
func TestAttackAuthIsNeverOverlooked(t *testing.T) {
	t.Parallel()
	public, variable := publicname.ConfigurationFile(), strings.ToUpper(publicname.Public("framework_auth"))
	for graph, name := range map[string]string{"a.py:a": "Python", "a.ts:a": "JavaScript", "a.rb:a": "own start"} {
		file := func(more string) string {
			if name == "own start" {
				more += `, "start": "./agent"`
			}
			return `{"graphs": {"a": "` + graph + `"}` + more + `}`
		}
		auth := `, "auth": {"path": "./auth.py:auth"}`
		for how, files := range map[string]map[string]string{
			"the key":           {"framework.json": file(auth)},
			"an escaped key":    {"framework.json": file(`, "\u0061uth": {"path": "./auth.py:auth"}`)},
			"a key given twice": {"framework.json": file(`, "auth": null` + auth)},
			"the public file":   {public: file(auth)},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				if name != "Python" {
					wantRefused(t, files, "- auth.path: ")
				} else if config, err := framework.Read(tree(t, files), ""); err != nil || config.Auth != "./auth.py:auth" {
					t.Errorf("got %+v, %v", config, err)
				}
			})
		}
		for how, c := range map[string]struct {
			files map[string]string
			words string
		}{
			"another word":            {map[string]string{"framework.json": file(`, "authentication": {"path": "./auth.py:auth"}`)}, `- authentication: is not a key of the configuration file, and the agent is not served without what it may ask for. Did you mean "auth"?`},
			"another case":            {map[string]string{"framework.json": file(`, "AUTH": {"path": "./auth.py:auth"}`)}, "- AUTH: is not a key"},
			"a value of another kind": {map[string]string{"framework.json": file(`, "auth": 1`)}, "- auth: "},
			"both files":              {map[string]string{"framework.json": file(""), public: file(auth)}, `both "framework.json" and "` + public + `"`},
			"a variable":              {map[string]string{"framework.json": file(`, "env": {"` + variable + `": "{}"}`)}, "- env." + variable + ": is not read here"},
			"a variable of a file":    {map[string]string{"framework.json": file(`, "env": ".env"`), ".env": "export " + variable + "='{}'\n"}, "- env." + variable + ": "},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				wantRefused(t, c.files, c.words)
			})
		}
	}
}

// TestAttackNamesForWhatProtects reads keys that were meant to be auth or encryption. They are
// refused if they ask for anything; names of other things are not.
func TestAttackNamesForWhatProtects(t *testing.T) {
	t.Parallel()
	file := func(name, value string) map[string]string {
		return map[string]string{"framework.json": `{"graphs": {"a": {"path": "a.py:a", "` + name + `": ` + value + `}}, "` + name + `": ` + value + `}`}
	}
	for key, names := range map[string][]string{
		"auth":       {"authentication", "Authorization", "authorisation", "authn", "auths", "custom_auth", "oauth", "auth_config", "authenticate", "x-auth", "auht", "atuh", "auh", "aauth"},
		"encryption": {"encrypt", "Encrypted", "custom_encryption", "encyption", "crypto", "encryptions"},
	} {
		for _, name := range names {
			wantRefused(t, file(name, `{"path": "x.py:x"}`), "- "+name+": is not a key of the configuration file", `Did you mean "`+key+`"?`,
				"- graphs.a."+name+": is not a key of a graph", `"`+key+`" is a key beside "graphs"`)
			if config, err := framework.Read(tree(t, file(name, "null")), ""); err != nil || len(config.Remarks) != 1 {
				t.Errorf("%s: null: got %+v, %v", name, config.Remarks, err)
			}
		}
	}
	for _, name := range []string{"author", "Authors", "author_email", "co_author", "package-authors", "auto", "bath", "descriptions", "scripts", "é", "a", ""} {
		if _, err := framework.Read(tree(t, file(name, `["x"]`)), ""); err != nil {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// TestAttackALongNameOfAKey reads a key that fills the configuration file. It takes no more memory
// than the file, several times.
func TestAttackALongNameOfAKey(t *testing.T) { //nolint:paralleltest // it counts allocations
	dir := tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "` + strings.Repeat("x", 100_000) + `": 1}`})
	if count := testing.AllocsPerRun(1, func() { _, _ = framework.Read(dir, "") }); count > 10_000 {
		t.Errorf("it takes %v allocations", count)
	}
}

// TestAttackAuthOfAnotherRuntime checks that only authentication that the runtime of the graphs
// runs is accepted, and only if every member of it is supported.
func TestAttackAuthOfAnotherRuntime(t *testing.T) {
	t.Parallel()
	for graph, suffix := range map[string]string{"a.py:a": "py", "a.ts:a": "ts"} {
		other := map[string]string{"py": "ts", "ts": "py"}[suffix]
		for auth, words := range map[string]string{
			`{}`:                            "",
			`true`:                          "- auth: must be an object",
			`{"path": ""}`:                  "- auth.path: must be",
			`{"path": 1}`:                   "- auth.path: must be",
			`{"path": "./auth.SUFFIX"}`:     "- auth.path: must be",
			`{"path": "./auth.SUFFIX:"}`:    "- auth.path: must be",
			`{"path": "./auth.OTHER:auth"}`: "- auth.path: the runtime of the graphs cannot import",
			`{"path": "./auth:auth"}`:       "- auth.path: the runtime of the graphs cannot import",
			`{"path": "../auth.SUFFIX:a"}`:  "leaves the repository",
			`{"path": "/auth.SUFFIX:auth"}`: "leaves the repository",
			`{"path": "./auth.SUFFIX:auth", "cache": {"ttl": 60}}`:                      "- auth.cache: answers of the repository's own authentication are never kept",
			`{"path": "./auth.SUFFIX:auth", "` + publicname.KeysPastAuth() + `": true}`: "a key of the platform does not get past the repository's own authentication",
			`{"path": "./auth.SUFFIX:auth", "other": 1}`:                                "- auth.other: is not a key of auth",
			`{"path": "./auth.SUFFIX:auth", "disable_studio_auth": 1}`:                  "- auth.disable_studio_auth: must be true or false",
			`{"path": "./auth.SUFFIX:auth", "disable_studio_auth": "yes"}`:              "- auth.disable_studio_auth: must be true or false",
			`{"disable_studio_auth": true}`:                                             "- auth.path: must be",
		} {
			auth = strings.NewReplacer("SUFFIX", suffix, "OTHER", other).Replace(auth)
			config, err := readAuth(t, graph, auth)
			if words == "" && (err != nil || config.Auth != "") || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
				t.Errorf("%s, %s: %q, %v; want %q", graph, auth, config.Auth, err, words)
			}
		}
		for value, remarks := range map[string]int{`true`: 0, `"true"`: 0, `"false"`: 1, `true, "openapi": {}`: 0, `true, "openapi": {"security": [{"key": []}]}`: 1} {
			good := `{"path": "./auth.` + suffix + `:auth", "disable_studio_auth": ` + value + `}`
			if config, err := readAuth(t, graph, good); err != nil || config.Auth != "./auth."+suffix+":auth" || len(config.Remarks) != remarks {
				t.Errorf("a good one with %s: %+v, %v", value, config, err)
			}
		}
	}
	if config, err := readAuth(t, `a.rb:a"}, "start": "./agent", "env": {"A": "b`, `{"path": "./auth.py:auth"}`); err == nil || !strings.Contains(err.Error(), "auth.path: only the platform's runtimes import it") {
		t.Errorf("with a start command: %+v, %v", config, err)
	}
}

// readAuth reads a repository with a graph and the key auth.
func readAuth(t *testing.T, graph, auth string) (framework.Config, error) {
	t.Helper()
	head := `{"graphs": {"a": "` + graph + `"}, "dependencies": ["."], "auth": `
	return framework.Read(tree(t, map[string]string{"framework.json": head + auth + `}`, "pyproject.toml": "", "package.json": "{}"}), "")
}

// TestAttackADirectoryForTheFile checks that the refusal does not tell where the tree is on the
// machine.
func TestAttackADirectoryForTheFile(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"agent.json/there": ""})
	_, err := framework.Read(dir, "agent.json")
	if err == nil || strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), `"agent.json" cannot be read: is a directory`) {
		t.Errorf("got %v", err)
	}
}
