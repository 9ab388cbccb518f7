package agentserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/match"
)

// ownFilter is the filter that metadata must match for a user, as the repository's own
// authentication says.
type ownFilter = match.Filter

// Operators of such filters.
const (
	operatorEqual    = "$eq"
	operatorContains = "$contains"
)

// parseOwnFilter reads {"owner": "ada"}, {"owner": {"$eq": "ada"}} and {"teams": {"$contains":
// "red"}}, or several of them, all of which must hold. Any other filter that a handler returns
// is an error, and lets no user in.
func parseOwnFilter(raw json.RawMessage) (ownFilter, error) {
	var members map[string]json.RawMessage
	if present(raw) == nil {
		return ownFilter{}, nil
	}
	if err := json.Unmarshal(raw, &members); err != nil {
		return ownFilter{}, fmt.Errorf("read the filter: %w", err)
	}
	wanted := map[string]any{}
	for name, value := range members {
		if strings.HasPrefix(name, "$") {
			return ownFilter{}, fmt.Errorf("the filter has the operator %.32q in the place of a field", name)
		}
		condition, err := conditionOf(value)
		if err != nil {
			return ownFilter{}, fmt.Errorf("the filter of %.100q: %w", name, err)
		}
		wanted[name] = condition
	}
	return match.Parse(object(wanted))
}

// conditionOf returns a condition in the form of package match: a value that is equal, or a
// list that is contained.
func conditionOf(value json.RawMessage) (any, error) {
	var operators map[string]json.RawMessage
	if json.Unmarshal(value, &operators) != nil || operators == nil {
		return scalar(value)
	}
	if len(operators) != 1 {
		return nil, fmt.Errorf("it has %d operators, not one", len(operators))
	}
	for operator, operand := range operators {
		switch operator {
		case operatorEqual:
			return scalar(operand)
		case operatorContains:
			return contained(operand)
		}
		return nil, fmt.Errorf("there is no operator %.32q", operator)
	}
	return nil, nil
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
	var found any
	if err := json.Unmarshal(state.OrNull(value), &found); err != nil {
		return nil, err
	}
	switch found.(type) {
	case string, float64, bool:
		return value, nil
	}
	return nil, fmt.Errorf("%.64s is not a string, a number or a boolean", value)
}
