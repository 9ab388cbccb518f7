package rollout

import (
	"encoding/json"
	"testing"

	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/revision"
)

func TestResourcesOfARevision(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]compute.Resources{
		``:     {},
		`{}`:   {},
		`null`: {},
		`{"cpu":0.5,"memory_mb":1024,"min_scale":1,"max_scale":3,"labels":{"a":"b"},"queue_cpu":9}`: {CPU: 1, MemoryMB: 2048, MinScale: 1, MaxScale: 3},
		`{"cpu":1,"cpu_limit":1,"memory_mb":1024,"memory_limit_mb":null,"max_scale":null}`:          {CPU: 1, MemoryMB: 2048},
		`{"memory_mb":1024,"memory_limit_mb":4096}`:                                                 {MemoryMB: 4096},
		`{"memory_mb":1024,"memory_limit_mb":512,"cpu_limit":3}`:                                    {CPU: 3, MemoryMB: 1024},
	} {
		got, err := resourcesOf(revision.Revision{Spec: revision.Spec{ResourceSpec: json.RawMessage(spec)}})
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", spec, got, err, want)
		}
	}
	if _, err := resourcesOf(revision.Revision{Spec: revision.Spec{ResourceSpec: json.RawMessage(`[]`)}}); err == nil {
		t.Error("a list: got no error")
	}
}
