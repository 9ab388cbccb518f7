package local_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
)

// TestConfigInvalid builds a repository whose file links to a file outside. Package framework tests
// what else it refuses.
func TestConfigInvalid(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{
		"framework.json": `{"graphs": {"a": "a:a"}, "start": "x", "build": 5, "env": "link.env"}`, "link.env": "-> /etc/passwd",
	})
	m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonConfigInvalid, "- build: must be a command", `env: the file "link.env" cannot be read`, "escapes")
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

// TestConfigPath names files. Package framework tests other paths.
func TestConfigPath(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"sub/framework.json": buildtest.Framework("true"), "away": "-> /etc", "here": "-> sub"})
	for path, c := range map[string]struct{ reason, words string }{
		"nope/framework.json": {build.ReasonConfigNotFound, `"nope/framework.json"`},
		"away/passwd":         {build.ReasonConfigInvalid, "escapes"},
		"here/framework.json": {},
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
