package assistant

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Apply merges the values of a run over the values of the assistant. In the configuration,
// tags are added and the members of configurable are replaced one by one. Everything else is
// replaced at the first level. Clients give the same values as configurable or as context, so a
// member of one of these in the run also replaces the assistant's member of that name in the other.
// Each value of the run may be nil. A result is nil if both values are missing.
func (a Assistant) Apply(config, runContext, metadata json.RawMessage) (_, _, _ json.RawMessage, err error) {
	own := a.Metadata
	if a.Assistant == DefaultID(a.Graph) && string(own) == string(systemMetadata) {
		// It only says that no client has created the assistant, which is not about its runs.
		own = nil
	}
	under, upper, err := partsOf(a.Config, config)
	if err != nil {
		return nil, nil, nil, err
	}
	if config, err = overConfig(a.Config, config, under, upper, runContext); err != nil {
		return nil, nil, nil, err
	}
	if runContext, err = overMembers(a.Context, upper.Configurable, runContext); err != nil {
		return nil, nil, nil, err
	}
	metadata, err = record.Merge(own, metadata)
	return config, runContext, metadata, err
}

// parts are the parts of a configuration that are merged.
type parts struct {
	Tags         []string        `json:"tags"`
	Configurable json.RawMessage `json:"configurable"`
}

func partsOf(below, above json.RawMessage) (under, upper parts, err error) {
	for from, to := range map[*json.RawMessage]*parts{&below: &under, &above: &upper} {
		if !record.Empty(*from) && json.Unmarshal(*from, to) != nil {
			return parts{}, parts{}, fault.New(fault.Invalid, "config: tags must be texts, and configurable an object.")
		}
	}
	return under, upper, nil
}

func overConfig(below, above json.RawMessage, under, upper parts, runContext json.RawMessage) (json.RawMessage, error) {
	all, err := record.Merge(below, above)
	if err != nil || record.Empty(below) || record.Empty(above) && record.Empty(runContext) {
		return all, err
	}
	configurable, err := overMembers(under.Configurable, runContext, upper.Configurable)
	if err != nil {
		return nil, fault.New(fault.Invalid, "config: configurable must be an object.")
	}
	changed := map[string]any{}
	if tags := append(slices.Clip(under.Tags), upper.Tags...); len(tags) > 0 {
		slices.Sort(tags)
		changed["tags"] = slices.Compact(tags)
	}
	if configurable != nil {
		changed["configurable"] = configurable
	}
	return record.Merge(all, record.Encode(changed))
}

// overMembers lays above over below. Before that, it replaces the members of below that other also
// has.
func overMembers(below, other, above json.RawMessage) (json.RawMessage, error) {
	if record.Empty(below) || record.Empty(other) {
		return record.Merge(below, above)
	}
	var has, replaces map[string]json.RawMessage
	for from, to := range map[*json.RawMessage]*map[string]json.RawMessage{&below: &has, &other: &replaces} {
		if err := json.Unmarshal(*from, to); err != nil {
			return nil, fmt.Errorf("merge members: %w", err)
		}
	}
	for name, value := range replaces {
		if _, ok := has[name]; ok {
			has[name] = value
		}
	}
	return record.Merge(record.Encode(has), above)
}
