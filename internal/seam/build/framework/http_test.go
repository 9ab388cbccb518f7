package framework_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// readHTTP reads a configuration file with the key http.
func readHTTP(t *testing.T, head, asked string) (framework.Config, error) {
	t.Helper()
	return framework.Read(tree(t, map[string]string{"framework.json": head + `, "http": ` + asked + `}`, "pyproject.toml": "", "package.json": "{}"}), "")
}

const pythonHead = `{"graphs": {"a": "a.py:a"}, "dependencies": ["."]`

func TestTheKeyHTTP(t *testing.T) {
	t.Parallel()
	age := 60
	config, err := readHTTP(t, pythonHead, `{
		"app": "./src/app.py:app", "disable_runs": true, "disable_store": false, "disable_meta": true, "enable_custom_route_auth": true, "mount_prefix": "/api/v1/", "middleware_order": "auth_first",
		"configurable_headers": {"include": ["x-user-*"], "excludes": ["x-*"]}, "logging_headers": {"excludes": ["x"]},
		"cors": {"allow_origins": ["https://a.test"], "allow_origin_regex": "https://.*", "allow_methods": ["GET"], "allow_headers": ["x-one"], "allow_credentials": true, "expose_headers": ["x-two"], "max_age": 60}
	}`)
	check.Must(t, err)
	want := build.Settings{HTTP: &build.HTTP{
		App: "./src/app.py:app", Disabled: []string{"meta", "runs"}, RouteAuth: true, MountPrefix: "/api/v1", Include: []string{"x-user-*"}, Exclude: []string{"x-*"},
		CORS: &build.CORS{
			Origins: []string{"https://a.test"}, OriginPattern: "https://.*", Methods: []string{"GET"}, Headers: []string{"x-one"}, Credentials: true, Exposed: []string{"x-two"}, MaxAge: &age,
		},
	}}
	if diff := cmp.Diff(want, config.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if len(config.Remarks) != 1 || !strings.HasPrefix(config.Remarks[0], "http.logging_headers: ") {
		t.Errorf("the remarks are %q", config.Remarks)
	}
	if keys := config.Settings.Keys(); len(keys) != 1 || keys[0] != "http" {
		t.Errorf("the keys are %q", keys)
	}
}

func TestWhatIsRefusedOfTheKeyHTTP(t *testing.T) {
	t.Parallel()
	for asked, words := range map[string]string{
		`true`:                                  "- http: must be an object",
		`{"other": 1}`:                          "- http.other: is not a key of http",
		`{"app": 1}`:                            "- http.app: must be",
		`{"app": "./app.py"}`:                   "- http.app: must be",
		`{"app": "./app.ts:app"}`:               `- http.app: the runtime of the graphs cannot import "./app.ts"`,
		`{"app": "../app.py:app"}`:              "leaves the repository",
		`{"app": "/app.py:app"}`:                "leaves the repository",
		`{"disable_runs": "yes"}`:               "- http.disable_runs: must be true or false",
		`{"disable_everything": true}`:          "- http.disable_everything: is not a key of http",
		`{"mount_prefix": "api"}`:               "- http.mount_prefix: must be a path",
		`{"mount_prefix": "/a/../b"}`:           "- http.mount_prefix: must be a path",
		`{"middleware_order": "last"}`:          "- http.middleware_order: must be",
		`{"cors": ["https://a.test"]}`:          "- http.cors: must be an object",
		`{"cors": {"origins": ["a"]}}`:          "- http.cors.origins: is not a key of http.cors",
		`{"cors": {"allow_origins": "*"}}`:      "- http.cors.allow_origins: must be a list of strings",
		`{"cors": {"allow_origin_regex": "("}}`: "- http.cors.allow_origin_regex: cannot be used",
		`{"cors": {"allow_origin_regex": "https://((a|a?){100}){9}"}}`: "- http.cors.allow_origin_regex: cannot be used: the pattern is larger than",
		`{"cors": {"max_age": -1}}`:                                    "- http.cors.max_age: must be 0 or more",
		`{"cors": {"max_age": 1.5}}`:                                   "- http.cors.max_age: must be a whole number",
		`{"cors": {"expose_headers": ["a\r\nb"]}}`:                     "- http.cors.expose_headers: must name one thing",
		`{"configurable_headers": {"exclude": ["x-["]}}`:               `- http.configurable_headers: the pattern "x-[" cannot be used`,
		`{"configurable_headers": {"include": 1}}`:                     "- http.configurable_headers.include: must be a list of strings",
		`{"configurable_headers": {"only": [1]}}`:                      "- http.configurable_headers.only: is not a key",
	} {
		if _, err := readHTTP(t, pythonHead, asked); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", asked, err, words)
		}
	}
	if _, err := readHTTP(t, `{"graphs": {"a": "a.rb:a"}, "start": "./agent"`, `{"app": "./app.py:app"}`); err == nil || !strings.Contains(err.Error(), "only the platform's runtimes import it") {
		t.Errorf("with a start command: %v", err)
	}
	for _, asked := range []string{`{"app": "my.app:app"}`, `{}`, `null`, `{"disable_ui": true, "disable_mcp": true, "disable_a2a": true}`} {
		if _, err := readHTTP(t, pythonHead, asked); err != nil {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// TestTheKeyHTTPOfJavaScript checks which applications the Node runtime imports, and that their
// routes require the repository's own authentication if there is one.
func TestTheKeyHTTPOfJavaScript(t *testing.T) {
	t.Parallel()
	const plain, guarded = `{"graphs": {"a": "a.ts:a"}`, `{"graphs": {"a": "a.ts:a"}, "auth": {"path": "./auth.ts:auth"}`
	for _, c := range []struct {
		head, asked string
		routeAuth   bool
		remarks     int
	}{
		{plain, `{"app": "./src/app.ts:app"}`, false, 0},
		{plain, `{"app": "app.mjs:default", "enable_custom_route_auth": true}`, true, 0},
		{guarded, `{"app": "./src/app.ts:app"}`, true, 2},
		{guarded, `{"app": "./src/app.ts:app", "enable_custom_route_auth": true}`, true, 1},
		{guarded, `{"app": "./src/app.ts:app", "enable_custom_route_auth": false}`, false, 1},
		{guarded, `{"disable_store": true}`, false, 1},
	} {
		c.head = strings.Replace(c.head, `:auth"}`, `:auth", "disable_studio_auth": false}`, 1)
		config, err := readHTTP(t, c.head, c.asked)
		if err != nil || config.Settings.HTTP.RouteAuth != c.routeAuth || len(config.Remarks) != c.remarks {
			t.Errorf("%s with %s: %+v, %q, %v", c.asked, c.head, config.Settings.HTTP, config.Remarks, err)
		}
	}
	for asked, words := range map[string]string{
		`{"app": "./app.py:app"}`: `- http.app: the runtime of the graphs cannot import "./app.py": the node runtime hosts them`,
		`{"app": "my.app:app"}`:   "- http.app: the runtime of the graphs cannot import",
	} {
		if _, err := readHTTP(t, plain, asked); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", asked, err, words)
		}
	}
}

func TestPatternsOfHeaders(t *testing.T) {
	t.Parallel()
	h := &build.HTTP{Include: []string{"X-User-*", "*-id", "a*b*c", "exact"}, Exclude: []string{"x-user-secret*", "*token*"}}
	for name, want := range map[string]string{
		"x-user-": "shown", "x-user-name": "shown", "x-user-secret": "hidden", "my-id": "shown", "my-ids": "", "abc": "shown", "aXbYc": "shown", "aXbY": "", "exact": "shown", "exactly": "",
		"x-my-token-id": "hidden", "": "",
	} {
		shown, said := h.Header(strings.ToLower(name))
		if got := map[[2]bool]string{{true, true}: "shown", {false, true}: "hidden"}[[2]bool{shown, said}]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
