package revision_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestDefaultsOfAResourceSpec fills in each value that is not given.
func TestDefaultsOfAResourceSpec(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`{}`:             `{}`,
		`{"cpu":null}`:   `{"cpu":null}`,
		`{"cpu":0.1}`:    `{"cpu":0.1,"cpu_limit":0.2,"queue_cpu":0.1,"queue_cpu_limit":0.2}`,
		`{"cpu":0.3}`:    `{"cpu":0.3,"cpu_limit":0.6,"queue_cpu":0.3,"queue_cpu_limit":0.6}`,
		`{"cpu":3}`:      `{"cpu":3,"cpu_limit":6,"queue_cpu":3,"queue_cpu_limit":6}`,
		`{"db_cpu":0.5}`: `{"db_cpu":0.5,"db_cpu_limit":1}`,
		`{"memory_mb":512,"min_scale":0,"max_scale":4}`: `{"memory_mb":512,"memory_limit_mb":1024,"queue_memory_mb":512,"queue_memory_limit_mb":1024,
			"min_scale":0,"queue_min_scale":0,"max_scale":4,"queue_max_scale":4}`,
		`{"cpu":1,"cpu_limit":null,"queue_cpu":0.5}`:                     `{"cpu":1,"cpu_limit":2,"queue_cpu":0.5,"queue_cpu_limit":1}`,
		`{"cpu":1,"cpu_limit":1,"queue_cpu_limit":5}`:                    `{"cpu":1,"cpu_limit":1,"queue_cpu":1,"queue_cpu_limit":5}`,
		`{"db_memory_mb":100,"db_memory_limit_mb":100}`:                  `{"db_memory_mb":100,"db_memory_limit_mb":100}`,
		`{"db_memory_mb":100,"queue_memory_mb":7}`:                       `{"db_memory_mb":100,"db_memory_limit_mb":200,"queue_memory_mb":7,"queue_memory_limit_mb":14}`,
		`{"volumes":[{"name":"a","csi":{"x":12345678901234567890}}]}`:    `{"volumes":[{"name":"a","csi":{"x":12345678901234567890}}]}`,
		`{"orchestrator_cpu":1,"executor_memory_mb":2,"min_scale":null}`: `{"orchestrator_cpu":1,"executor_memory_mb":2,"min_scale":null}`,
	} {
		spec := revision.Spec{ResourceSpec: json.RawMessage(sent)}
		got, err := spec.Effective()
		if err != nil {
			t.Errorf("%s: %v", sent, err)
			continue
		}
		if diff := cmp.Diff(decoded(t, want), decoded(t, string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sent, diff)
		}
		if string(spec.ResourceSpec) != sent {
			t.Errorf("%s: what was sent became %s", sent, spec.ResourceSpec)
		}
	}
	if got, err := (revision.Spec{}).Effective(); got != nil || err != nil {
		t.Errorf("without one: got %s, %v", got, err)
	}
	for _, bad := range []string{`[]`, `{"cpu":"much"}`} {
		if got, err := (revision.Spec{ResourceSpec: json.RawMessage(bad)}).Effective(); err == nil {
			t.Errorf("%s: got %s, want an error", bad, got)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	check.Must(t, json.Unmarshal([]byte(text), &value))
	return value
}
