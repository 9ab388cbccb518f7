package revision

import (
	"encoding/json"
	"fmt"
)

// fallback derives a missing value of a ResourceSpec: a multiple of another value.
type fallback struct {
	name, from string
	times      float64
}

// fallbacks are in the order in which they are filled in: the values of the queue may come
// from the values of the server, and the queue's limits may come from the queue's values.
var fallbacks = []fallback{
	{"cpu_limit", "cpu", 2},
	{"memory_limit_mb", "memory_mb", 2},
	{"queue_min_scale", "min_scale", 1},
	{"queue_max_scale", "max_scale", 1},
	{"queue_cpu", "cpu", 1},
	{"queue_cpu_limit", "queue_cpu", 2},
	{"queue_memory_mb", "memory_mb", 1},
	{"queue_memory_limit_mb", "queue_memory_mb", 2},
	{"db_cpu_limit", "db_cpu", 2},
	{"db_memory_limit_mb", "db_memory_mb", 2},
}

// Effective returns the ResourceSpec that is deployed: the ResourceSpec that was sent,
// completed with default values. Clients are shown the ResourceSpec as it was sent, without
// these values. Without a ResourceSpec the result is nil.
func (s Spec) Effective() (json.RawMessage, error) {
	if len(s.ResourceSpec) == 0 {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(s.ResourceSpec, &members); err != nil {
		return nil, fmt.Errorf("decode resource_spec: %w", err)
	}
	for _, f := range fallbacks {
		if given(members[f.name]) || !given(members[f.from]) {
			continue
		}
		var value float64
		if err := json.Unmarshal(members[f.from], &value); err != nil {
			return nil, fmt.Errorf("decode resource_spec: %s: %w", f.from, err)
		}
		text, err := json.Marshal(value * f.times)
		if err != nil {
			return nil, fmt.Errorf("decode resource_spec: %s: %w", f.from, err)
		}
		members[f.name] = text
	}
	return json.Marshal(members)
}

func given(text json.RawMessage) bool { return len(text) > 0 && string(text) != "null" }
