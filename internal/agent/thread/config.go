package thread

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/record"
)

// maxConfig is how many bytes of configuration a thread keeps: each change of its item writes them.
const maxConfig = 8 << 10

// configMembers are the members of a run's configuration that a thread keeps.
var configMembers = []string{"configurable", "metadata", "recursion_limit", "tags"}

// secretWords are parts of the names of values that may be secrets. Such values are not kept. The
// framework leaves out the same names where it writes a configuration into metadata.
var secretWords = []string{"key", "token", "secret", "password", "auth"}

// ownNames are values that one run has for itself.
var ownNames = []string{"checkpoint_id", "checkpoint_map", "checkpoint_ns", "run_id", "thread_id"}

// kept reports whether a thread keeps the value of a name.
func kept(name string) bool {
	lower := strings.ToLower(name)
	return !strings.HasPrefix(name, "__") && !slices.Contains(ownNames, name) &&
		!slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) })
}

// keptOf returns a value without the members, at any depth, that a thread does not keep.
func keptOf(value json.RawMessage) json.RawMessage {
	decoded, err := match.Decode(value)
	if err != nil {
		return value
	}
	removeUnkept(decoded)
	return record.Encode(decoded)
}

func removeUnkept(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(name string, _ any) bool { return !kept(name) })
		for _, member := range v {
			removeUnkept(member)
		}
	case []any:
		for _, member := range v {
			removeUnkept(member)
		}
	}
}

// withConfig returns the thread's configuration with a run's configuration laid over it, member by
// member, and value by value in configurable. It returns the thread's own configuration if the run
// brings nothing, or too much.
func (t Thread) withConfig(config json.RawMessage) json.RawMessage {
	var members, next map[string]json.RawMessage
	if record.Empty(config) || json.Unmarshal(config, &members) != nil {
		return t.Config
	}
	if len(t.Config) > 0 && json.Unmarshal(t.Config, &next) != nil {
		return t.Config
	}
	if next == nil {
		next = map[string]json.RawMessage{}
	}
	for _, name := range configMembers {
		value := keptOf(members[name])
		if name == "configurable" {
			if merged, err := record.Merge(next[name], value); err == nil {
				value = merged
			}
		}
		if state.Present(value) != nil {
			next[name] = value
		}
	}
	if encoded := record.Encode(next); len(next) > 0 && len(encoded) <= maxConfig {
		return encoded
	}
	return t.Config
}
