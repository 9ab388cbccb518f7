package runner

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// checkpointOf decodes an agent's checkpoint. It cuts out the values and the data, which are
// large: the values are checked when they are compared with the state.
func checkpointOf(data json.RawMessage) (c graph.Checkpoint, err error) {
	large, rest, err := state.Cut(data, "values", "data")
	if err == nil {
		err = json.Unmarshal(rest, &c)
	}
	if err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	if string(large[0]) != "null" {
		c.Values = large[0]
	}
	if c.Data, err = opaque(large[1]); err != nil {
		return c, fmt.Errorf("data of checkpoint %.40s: %w", c.ID, err)
	}
	return c, nil
}

// opaque decodes base64 in a JSON string. For null it returns nil.
func opaque(value json.RawMessage) (data []byte, err error) {
	if len(value) == 0 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		if value == nil {
			return nil, nil
		}
		err = json.Unmarshal(value, &data)
		return data, err
	}
	text := value[1 : len(value)-1]
	data = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(data, text)
	if err != nil {
		return nil, errors.Join(errors.New("no base64"), err)
	}
	return data[:n], nil
}
