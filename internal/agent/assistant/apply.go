package assistant

import (
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Apply lays what a run brings over what the assistant has: of its configuration the tags are added
// and the members of configurable each replaced, everything else is replaced on the first level.
// Each of the run's may be nil; so are the results where there is nothing.
func (a Assistant) Apply(config, runContext, metadata json.RawMessage) (_, _, _ json.RawMessage, err error) {
	own := a.Metadata
	if a.Assistant == DefaultID(a.Graph) && string(own) == string(systemMetadata) {
		own = nil // says of the assistant that nobody has made it, which is nothing about its runs
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
