package framework_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// withLines returns a repository whose configuration file has instructions for the image.
func withLines(t *testing.T, lines ...string) map[string]string {
	t.Helper()
	text, err := json.Marshal(lines)
	check.Must(t, err)
	return map[string]string{"framework.json": `{"graphs": {"a": "a.ts:a"}, "dockerfile_lines": ` + string(text) + `}`, "package.json": "{}"}
}

// TestLinesOfADockerfile reads instructions in the ways in which public repositories write them.
func TestLinesOfADockerfile(t *testing.T) {
	t.Parallel()
	config, err := framework.Read(tree(t, withLines(t,
		"# system packages", "RUN apt-get update && \\", "  # for sound", "", "    apt-get install -y \\  ", "    ffmpeg\nENV A=b C=\"d e\" F=g\\ h PATH=/opt/x:$PATH",
		"  run [\"touch\", \"/x\"]", "ARG V W=1", "USER 1000", "WORKDIR /srv", "RUN\techo $((1 << 2)) \\\\ 1>&2",
	)), "", framework.OfferLines)
	check.Must(t, err)
	want := []string{
		"RUN apt-get update &&     apt-get install -y     ffmpeg", `ENV A=b C="d e" F=g\ h PATH=/opt/x:$PATH`, `run ["touch", "/x"]`, "ARG V W=1", "USER 1000", "WORKDIR /srv",
		"RUN\techo $((1 << 2)) \\\\ 1>&2",
	}
	if diff := cmp.Diff(want, config.Lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestAttackLinesOfADockerfile checks that the lines change nothing that the platform decides,
// and have nothing that the engine would not read.
func TestAttackLinesOfADockerfile(t *testing.T) {
	t.Parallel()
	for line, words := range map[string]string{
		"FROM alpine":                       "must begin with ARG, ENV, RUN, USER or WORKDIR",
		"SHELL [\"/bin/bash\"]":             "must begin with",
		"ENTRYPOINT [\"/bin/true\"]":        "must begin with",
		"CMD true":                          "must begin with",
		"ONBUILD RUN true":                  "must begin with",
		"VOLUME /opt/agent":                 "must begin with",
		"apt-get install ffmpeg":            "must begin with",
		"COPY . /srv":                       "no files of the repository yet",
		"copy --from=alpine / /":            "no files of the repository yet",
		"ADD http://169.254.169.254/ /x":    "no files of the repository yet",
		"RUN":                               "must say what to do",
		"ENV":                               "must say what to do",
		"RUN --mount=type=secret,id=a true": "options of instructions",
		"RUN --security=insecure true":      "options of instructions",
		"RUN cat <<EOF":                     "here-documents",
		"RUN cat <<-'EOF'":                  "here-documents",
		`RUN ["a", 1]`:                      "must be a command, or a list of strings",
		"RUN []":                            "must be a command, or a list of strings",
		"RUN true\x00":                      "control characters",
		"RUN true\vUSER root":               "control characters",
		"ENV A b":                           "must be NAME=value",
		"ENV A=b c":                         "must be NAME=value",
		"ENV =b":                            "is not a name",
		"ENV A=b # comment":                 "must be NAME=value",
		"ARG =b":                            "is not a name",
		"ENV SLIPWAY_AUTH=./auth.py:auth":   "SLIPWAY_AUTH: is set by the platform",
		"ENV A=1 FRAMEWORK_AUTH={}":         "FRAMEWORK_AUTH: is not read here",
		"USER a b":                          "must have one value",
		"RUN true \\":                       "nothing continues it",
	} {
		_, err := framework.Read(tree(t, withLines(t, line)), "", framework.OfferLines)
		if err == nil || !strings.Contains(err.Error(), "- dockerfile_lines: ") || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want %q", line, err, words)
		}
	}
	if _, err := framework.Read(tree(t, withLines(t, strings.Repeat("RUN true\n", 65))), "", framework.OfferLines); err == nil || !strings.Contains(err.Error(), "may have 64 instructions") {
		t.Errorf("many lines: got %v", err)
	}
	text := strings.Replace(withLines(t)["framework.json"], "null", `"RUN true"`, 1)
	if _, err := framework.Read(tree(t, map[string]string{"framework.json": text, "package.json": "{}"}), "", framework.OfferLines); err == nil || !strings.Contains(err.Error(), "must be a list of strings") {
		t.Errorf("a text: got %v", err)
	}
}

// TestLinesWhereNoImageIsBuilt checks that the refusal says where they count, and what to do.
func TestLinesWhereNoImageIsBuilt(t *testing.T) {
	t.Parallel()
	wantRefused(t, withLines(t, "RUN true"), "- dockerfile_lines: they count only where images are built", "serve --build-images", "a configuration file without the key", "source external_docker")
}

// TestBaseImages checks that an image of the public server pins nothing here, and that any other
// image is refused.
func TestBaseImages(t *testing.T) {
	t.Parallel()
	file := func(image string) map[string]string {
		return map[string]string{"framework.json": `{"graphs": {"a": "a.ts:a"}, "base_image": ` + image + `}`, "package.json": "{}"}
	}
	of := func(name string) string { return strings.Replace(publicname.Servers()[0], "-api", name, 1) }
	for _, image := range []string{of("-api"), of("js-api"), of("-server:0.2"), "docker.io/" + of("-api:3.12-wolfi")} {
		config, err := framework.Read(tree(t, file(`"`+image+`"`)), "")
		if err != nil || len(config.Remarks) != 1 || !strings.HasPrefix(config.Remarks[0], "base_image: the release is not used") {
			t.Errorf("%s: got %v, %q", image, err, config.Remarks)
		}
	}
	for _, image := range []string{`"python:3.12"`, `"evil.test/` + of("-api") + `"`, `"` + of("-apis") + `"`, `1`, `["x"]`} {
		wantRefused(t, file(image), "- base_image: may only be an image of the public server", "dockerfile_lines", "source external_docker")
	}
}

// TestRefusalsSayWhatToDoInstead reads what belongs to the public server alone.
func TestRefusalsSayWhatToDoInstead(t *testing.T) {
	t.Parallel()
	for members, words := range map[string]string{
		`"encryption": {"path": "./encryption.py:own"}`:     "- encryption: the platform encrypts nothing with a key, and with code of the repository only on one machine, for Python graphs (the key encryption): encrypt in the graph",
		`"checkpointer": {"path": "./own.py:checkpointer"}`: "- checkpointer.path: the platform keeps all checkpoints itself",
		`"checkpointer": {"backend": "mongo"}`:              "- checkpointer.backend: the platform keeps all checkpoints itself",
		`"checkpointer": {"uri": "mongodb://m"}`:            "- checkpointer.uri: the platform keeps all checkpoints itself",
		`"checkpointer": {"backend": 1}`:                    "- checkpointer.backend: must be a string",
		`"store": {"path": "./own.py:store"}`:               "- store.path: the platform keeps all items itself",
		`"priority": {"path": "./own.py:priority"}`:         "- priority: runs have no priorities here",
		`"env": {"LS_DEFAULT_CHECKPOINTER_BACKEND": "m"}`:   "- env.LS_DEFAULT_CHECKPOINTER_BACKEND: is not read here: the platform keeps all checkpoints itself",
		`"env": {"FRAMEWORK_CONFIG": "{}"}`:                 "- env.FRAMEWORK_CONFIG: is not read here: change the configuration of a graph's own assistant with PATCH /assistants/{assistant_id}",
		`"env": {"FRAMEWORK_AES_KEY": "0123456789abcdef"}`:  "- env.FRAMEWORK_AES_KEY: is not read here: the platform encrypts nothing",
		`"env": {"FRAMEWORK_HTTP": "{}"}`:                   "- env.FRAMEWORK_HTTP: is not read here: what it asks for belongs into the configuration file",
	} {
		_, err := framework.Read(tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a.ts:a"}, ` + members + `}`, "package.json": "{}"}), "")
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want %q", members, err, words)
		}
	}
}
