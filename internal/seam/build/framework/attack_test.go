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
)

// tree writes files into a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
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

// TestAttackARepositoryWithAuthIsNotBuilt reads repositories that ask for their own
// authentication in every way that the public server understands. No repository is built
// without its authentication.
func TestAttackARepositoryWithAuthIsNotBuilt(t *testing.T) {
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
		for how, c := range map[string]struct {
			files map[string]string
			words string
		}{
			"the key":                 {map[string]string{"framework.json": file(auth)}, "- auth: the repository's own authentication"},
			"an escaped key":          {map[string]string{"framework.json": file(`, "\u0061uth": {"path": "./auth.py:auth"}`)}, "- auth: "},
			"a key given twice":       {map[string]string{"framework.json": file(`, "auth": null` + auth)}, "- auth: "},
			"another case":            {map[string]string{"framework.json": file(`, "AUTH": {"path": "./auth.py:auth"}`)}, "- AUTH: is not a key"},
			"a value of another kind": {map[string]string{"framework.json": file(`, "auth": 1`)}, "- auth: "},
			"the public file":         {map[string]string{public: file(auth)}, "- auth: "},
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

// TestAttackAuthWhereItIsOffered checks that only authentication that the Python runtime runs
// is accepted, and only if every member of it is supported.
func TestAttackAuthWhereItIsOffered(t *testing.T) {
	t.Parallel()
	for auth, words := range map[string]string{
		`{}`:                          "",
		`true`:                        "- auth: must be an object",
		`{"path": ""}`:                "- auth.path: must be",
		`{"path": 1}`:                 "- auth.path: must be",
		`{"path": "./auth.py"}`:       "- auth.path: must be",
		`{"path": "my.auth:auth"}`:    "is not a Python file",
		`{"path": "./auth.ts:auth"}`:  "is not a Python file",
		`{"path": "../auth.py:auth"}`: "leaves the repository",
		`{"path": "/auth.py:auth"}`:   "leaves the repository",
		`{"path": "./auth.py:auth", "cache": {"ttl": 60}}`:     "- auth.cache: answers of the repository's own authentication are never kept",
		`{"path": "./auth.py:auth", "other": 1}`:               "- auth.other: is not a key of auth",
		`{"path": "./auth.py:auth", "disable_studio_auth": 1}`: "- auth.disable_studio_auth: must be true or false",
		`{"disable_studio_auth": true}`:                        "- auth.path: must be",
	} {
		files := tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "dependencies": ["."], "auth": ` + auth + `}`, "pyproject.toml": "", "a.py": ""})
		config, err := framework.Read(files, "", framework.OfferAuth)
		if words == "" && (err != nil || config.Auth != "") || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%s: %q, %v; want %q", auth, config.Auth, err, words)
		}
	}
	for more, words := range map[string]string{`"a.ts:a"}`: "auth: is only for graphs that the python runtime hosts", `"a.rb:a"}, "start": "./agent"`: "auth: is only for graphs that the python runtime hosts"} {
		files := tree(t, map[string]string{"framework.json": `{"graphs": {"a": ` + more + `, "auth": {"path": "./auth.py:auth"}}`, "package.json": "{}"})
		if config, err := framework.Read(files, "", framework.OfferAuth); err == nil || !strings.Contains(strings.ToLower(err.Error()), words) {
			t.Errorf("%s: %+v, %v", more, config, err)
		}
	}
	files := tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "dependencies": ["."], "auth": {"path": "./auth.py:auth", "disable_studio_auth": true}}`, "pyproject.toml": "", "a.py": ""})
	if config, err := framework.Read(files, "", framework.OfferAuth); err != nil || config.Auth != "./auth.py:auth" {
		t.Errorf("a good one: %+v, %v", config, err)
	}
}
