package ecs_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestLabels gives the agent's container the labels that the ResourceSpec asks for, beside the
// label of a restart.
func TestLabels(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": {{0, `{"services":[]}`}, replacing("arn:task:1", "COMPLETED")[0]}})
	release := newRelease()
	release.ResourceSpec = json.RawMessage(`{"cpu":1,"annotations":{"team":"b","a/b":"c"},"labels":{"team":"a"}}`)
	target := r.target()
	check.Must(t, target.Apply(t.Context(), release))
	check.Must(t, target.Restart(t.Context(), release, restartID))
	for i, want := range []map[string]string{{"a/b": "c", "team": "a"}, {"a/b": "c", "team": "a", "slipway.restart": restartID}} {
		var defined struct {
			ContainerDefinitions []struct{ DockerLabels map[string]string }
		}
		check.Must(t, json.Unmarshal([]byte(r.of("RegisterTaskDefinition")[i]), &defined))
		if got := defined.ContainerDefinitions[0].DockerLabels; !maps.Equal(got, want) {
			t.Errorf("the labels are %v, want %v", got, want)
		}
	}
	release.ResourceSpec = json.RawMessage(`{"labels":7}`)
	if err := target.Restart(t.Context(), release, anotherID); err == nil || !strings.Contains(err.Error(), "decode resource_spec") {
		t.Errorf("got %v", err)
	}
}

// TestMarkupFitsIntoTheSecret starts a release whose variables are as large as the secrets of a
// deployment may be, and all markup, which encoding/json escapes to six times its size by default.
func TestMarkupFitsIntoTheSecret(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": {{0, `{"services":[]}`}}})
	release := newRelease()
	markup := strings.Repeat("<&>", 20_000)
	release.Env = map[string]string{"MARKUP": markup}
	check.Must(t, r.target().Apply(t.Context(), release))
	var created struct{ SecretString string }
	check.Must(t, json.Unmarshal([]byte(r.of("CreateSecret")[0]), &created))
	if size := len(created.SecretString); size > 65_536 {
		t.Errorf("the secret has %d bytes, Secrets Manager takes 65,536", size)
	}
	var values map[string]string
	check.Must(t, json.Unmarshal([]byte(created.SecretString), &values))
	if values["MARKUP"] != markup {
		t.Errorf("the agent gets %.99q", values["MARKUP"])
	}
}
