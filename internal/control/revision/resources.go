package revision

import (
	"encoding/json"
	"fmt"
)

// fallback says where a value of a ResourceSpec comes from that is not given: a multiple of another
// one.
type fallback struct {
	name, from string
	times      float64
}

// fallbacks are in the order in which they are filled in: those of the queue may come from what the
// server got, their limits from them.
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

// Effective returns the ResourceSpec that is deployed: the one that was sent, with the values that
// its defaults mean. What was sent is shown without them. Without a ResourceSpec it is nil.
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
