package access

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/record"
)

// parseFilter reads the filter that metadata must match for a user, as the repository's own
// authentication says: {"owner": "ada"}, {"owner": {"$eq": "ada"}} and {"teams": {"$contains":
// "red"}}, or several of them, all of which must hold. Any other filter that a handler returns
// is an error, and lets no user in.
func parseFilter(raw json.RawMessage) (match.Filter, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(state.OrNull(raw), &members); err != nil {
		return match.Filter{}, fmt.Errorf("read the filter: %w", err)
	}
	wanted := map[string]any{}
	for name, value := range members {
		if strings.HasPrefix(name, "$") {
			return match.Filter{}, fmt.Errorf("the filter has the operator %.32q in the place of a field", name)
		}
		condition, err := conditionOf(value)
		if err != nil {
			return match.Filter{}, fmt.Errorf("the filter of %.100q: %w", name, err)
		}
		wanted[name] = condition
	}
	return match.Parse(record.Encode(wanted))
}

// conditionOf returns a condition in the form of package match: a value that is equal, or a
// list that is contained.
func conditionOf(value json.RawMessage) (any, error) {
	var operators map[string]json.RawMessage
	switch {
	case json.Unmarshal(value, &operators) != nil || operators == nil:
		return scalar(value)
	case len(operators) == 1 && operators["$eq"] != nil:
		return scalar(operators["$eq"])
	case len(operators) == 1 && operators["$contains"] != nil:
		return contained(operators["$contains"])
	}
	return nil, fmt.Errorf("%.64s is not one operator, $eq or $contains", value)
}

// contained returns the condition that a list has an element, or all of several elements.
func contained(operand json.RawMessage) (any, error) {
	var elements []json.RawMessage
	if json.Unmarshal(operand, &elements) != nil || elements == nil {
		elements = []json.RawMessage{operand}
	}
	conditions := make([]any, len(elements))
	for i, element := range elements {
		var err error
		if conditions[i], err = scalar(element); err != nil {
			return nil, err
		}
	}
	return conditions, nil
}

// scalar accepts a string, a number or a boolean. A null would stand for a user that a handler
// has not found.
func scalar(value json.RawMessage) (any, error) {
	var decoded any
	if err := json.Unmarshal(state.OrNull(value), &decoded); err != nil {
		return nil, err
	}
	switch decoded.(type) {
	case string, float64, bool:
		return value, nil
	}
	return nil, fmt.Errorf("%.64s is not a string, a number or a boolean", value)
}
