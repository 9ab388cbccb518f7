//go:build docker

package docker_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/docker"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestLinesOfTheRepositoryInImages builds images with instructions of the repository's own: they
// run as root, and the agent does not. A failure names the instruction.
func TestLinesOfTheRepositoryInImages(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(_ *docker.Config, c *local.Config) { c.Offers = []framework.Offer{framework.OfferLines} })
	spec := func(lines ...string) build.Spec {
		text, err := json.Marshal(lines)
		check.Must(t, err)
		return buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"a": "a:a"}, "start": "./agent", "dockerfile_lines": ` + string(text) + `}`}).URL())
	}
	built := m.build(t, spec("RUN true \\", "  && : >/only-root", "ENV A=b C=\"d e\" D=f\\ g", "WORKDIR /srv", "USER 65534", `RUN ["/bin/sh", "-c", "(: >/only-root) || exit 0; exit 1"]`))
	image, err := engine.ImageInspect(t.Context(), built.Artifact.Image)
	check.Must(t, err)
	for _, want := range []string{"A=b", "C=d e", "D=f g", "PORT=8080"} {
		if !slices.Contains(image.Config.Env, want) {
			t.Errorf("the environment %q lacks %q", image.Config.Env, want)
		}
	}
	if image.Config.User != "10001:10001" || image.Config.WorkingDir != "/opt/agent" || !slices.Equal(image.Config.Entrypoint, []string{"sh", "-c", "exec ./agent"}) {
		t.Errorf("the agent is started with %+v", image.Config)
	}
	for line, words := range map[string]string{
		"RUN echo gone; exit 3":    `the instruction "RUN echo gone; exit 3" of dockerfile_lines exited with code 3. Its last output:` + "\ngone",
		`ENV A=${B`:                `the instruction "ENV A=${B" of dockerfile_lines cannot be carried out: `,
		`WORKDIR ""`:               "of dockerfile_lines cannot be carried out: ",
		`RUN ["/no-such-program"]`: "of dockerfile_lines ",
	} {
		m.wantFailure(t, spec("RUN true", line), build.ReasonBuildCommandFailed, words)
	}
}
