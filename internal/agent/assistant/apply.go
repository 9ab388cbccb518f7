package assistant

import (
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Apply merges the values of a run over the values of the assistant. In the configuration,
// tags are added and the members of configurable are replaced one by one. Everything else is
// replaced at the first level. Each value of the run may be nil. A result is nil if both
// values are missing.
func (a Assistant) Apply(config, runContext, metadata json.RawMessage) (_, _, _ json.RawMessage, err error) {
	own := a.Metadata
	if a.Assistant == DefaultID(a.Graph) && string(own) == string(systemMetadata) {
		// It only says that no client has created the assistant, which is not about its runs.
		own = nil
	}
	if config, err = overConfig(a.Config, config); err != nil {
		return nil, nil, nil, err
	}
	if runContext, err = record.Merge(a.Context, runContext); err != nil {
		return nil, nil, nil, err
	}
	metadata, err = record.Merge(own, metadata)
	return config, runContext, metadata, err
}

func overConfig(below, above json.RawMessage) (json.RawMessage, error) {
	all, err := record.Merge(below, above)
	if err != nil || record.Empty(below) || record.Empty(above) {
		return all, err
	}
	type parts struct {
		Tags         []string        `json:"tags"`
		Configurable json.RawMessage `json:"configurable"`
	}
	var under, upper parts
	for from, to := range map[*json.RawMessage]*parts{&below: &under, &above: &upper} {
		if json.Unmarshal(*from, to) != nil {
			return nil, fault.New(fault.Invalid, "config: tags must be texts, and configurable an object.")
		}
	}
	configurable, err := record.Merge(under.Configurable, upper.Configurable)
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
