package local_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
)

func TestConfigInvalid(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
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
		"two languages":        {`{"graphs": {"a": "a.py:a", "b": "b.ts:b"}}`, []string{"graphs: must be all Python or all JavaScript"}},
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
		"keys that nobody knows": {`{"graphs": {"a": {"path": "a:a", "color": "red", "description": ["A."]}}, "start": "x", "graph": {}, "Auth": {}}`,
			[]string{"- Auth: is not a key of the configuration file", "- graph: is not a key", `- graphs.a.color: is not a key of a graph`, "- graphs.a.description: must be a string"}},
		"a key of the other language": {`{"graphs": {"a": "a.ts:a"}, "python_version": "3.12"}`, []string{"- python_version: is only for graphs that the python runtime hosts"}},
		"env file bad":                {`{"graphs": {"a": "a:a"}, "start": "x", "env": "bad.env"}`, []string{"env: line 2 of bad.env is not NAME=value", "env: line 3 of bad.env"}},
		"env file absent":             {`{"graphs": {"a": "a:a"}, "start": "x", "env": "/etc/hosts"}`, []string{`env: the path "/etc/hosts" must be relative`}},
		"env file leaves":             {`{"graphs": {"a": "a:a"}, "start": "x", "env": "../../x"}`, []string{`env: the file "../../x" cannot be read`}},
		"env file links":              {`{"graphs": {"a": "a:a"}, "start": "x", "env": "link.env"}`, []string{`env: the file "link.env" cannot be read`, "escapes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := buildtest.NewRepo(t, map[string]string{
				"framework.json": c.config, "bad.env": "A=1\nno assignment\nB=\"open\n", "link.env": "-> /etc/passwd",
			})
			m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonConfigInvalid, c.words...)
		})
	}
}

// A value that asks for nothing is accepted under every key.
func TestConfigThatAsksForNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": `{"$schema": "https://example.com/schema.json", "graphs": {"a": {"path": "a:a", "description": ""}},
		"start": "x", "auth": null, "http": {}, "dockerfile_lines": [], "image_distro": "debian", "pip_installer": "auto", "keep_pkg_tools": false}`})
	m.build(t, buildtest.NewSpec(r.URL()))
}

// TestConfigPublicName uses repositories with the public name of the file.
func TestConfigPublicName(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	name := publicname.ConfigurationFile()
	text := `{"graphs": {"a": "a:a"}, "start": "x"}`
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{name: text}).URL())
	spec.ConfigPath = ""
	m.build(t, spec)
	for want, files := range map[string]map[string]string{
		`it has "agents/one/` + name + `", "two/framework.json": name the file in framework_config_path`: {"agents/one/" + name: text, "two/framework.json": text, "README": ""},
		`its root has "README", "src/"`: {"README": "", "src/a.py": ""},
	} {
		spec := buildtest.NewSpec(buildtest.NewRepo(t, files).URL())
		spec.ConfigPath = ""
		m.wantFailure(t, spec, build.ReasonConfigNotFound, `"framework.json"`, want)
	}
}

func TestConfigPath(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{
		"sub/framework.json": buildtest.Framework("true"), "away": "-> /etc", "here": "-> sub", "large.json": strings.Repeat(" ", 1<<20+1),
	})
	for path, c := range map[string]struct{ reason, words string }{
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
		spec := buildtest.NewSpec(r.URL())
		spec.ConfigPath = path
		if c.reason != "" {
			m.wantFailure(t, spec, c.reason, c.words)
			continue
		}
		m.build(t, spec)
	}
}

func TestEnvFile(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{
		"sub/framework.json": `{"graphs": {"a": "a:a"}, "start": "x", "env": "conf/.env"}`,
		"sub/conf/.env": `# settings
PLAIN=one two # a comment
export EXPORTED = yes
EMPTY=
HASH=a#b
SINGLE='$kept "as" is\n'  # a comment
DOUBLE="line\nnext \"quoted\" \$5 \\"
PORT=9000` + "\r\n",
	})
	spec := buildtest.NewSpec(r.URL())
	spec.ConfigPath = "sub/framework.json"
	want := map[string]string{
		"PLAIN": "one two", "EXPORTED": "yes", "EMPTY": "", "HASH": "a#b", "SINGLE": `$kept "as" is\n`,
		"DOUBLE": "line\nnext \"quoted\" $5 \\", "PORT": "9000",
	}
	if diff := cmp.Diff(want, m.build(t, spec).Artifact.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestEnvFileThatIsNotInTheRepository(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"a": "a:a"}, "start": "x", "env": ".env"}`})
	spec := buildtest.NewSpec(r.URL())
	if env := m.build(t, spec).Artifact.Env; len(env) > 0 {
		t.Errorf("environment is %v, want none", env)
	}
	if log := m.log(t, spec); !strings.Contains(log, ".env is not in the repository") {
		t.Errorf("log %q does not say that the file is missing", log)
	}
}

// A process that is not a child of the shell is stopped with its server, however the server
// ends.
func TestStartCommandReplacesTheShell(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for start, want := range map[string][]string{
		`"./agent --port $PORT"`:   {"sh", "-c", "exec ./agent --port $PORT"},
		`"exec ./agent"`:           {"sh", "-c", "exec ./agent"},
		`"MODE=fast ./agent"`:      {"sh", "-c", "MODE=fast ./agent"},
		`"./prepare && ./agent"`:   {"sh", "-c", "./prepare && ./agent"},
		`"./agent > /dev/null"`:    {"sh", "-c", "./agent > /dev/null"},
		`["./agent", "a; b", "c"]`: {"./agent", "a; b", "c"},
	} {
		r := buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"a": "a:a"}, "start": ` + start + `}`})
		if diff := cmp.Diff(want, m.build(t, buildtest.NewSpec(r.URL())).Artifact.Start); diff != "" {
			t.Errorf("start %s (-want +got):\n%s", start, diff)
		}
	}
}

// TestCommandsOfJavaScriptForAnotherAgent builds an agent with a start command, for which the
// commands of the deployment do nothing.
func TestCommandsOfJavaScriptForAnotherAgent(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL())
	spec.InstallCommand, spec.BuildCommand = "false", "false"
	m.build(t, spec)
	for _, words := range []string{"install_command is not run", "build_command is not run"} {
		if log := m.log(t, spec); !strings.Contains(log, words) {
			t.Errorf("the log does not say %q:\n%s", words, log)
		}
	}
}
