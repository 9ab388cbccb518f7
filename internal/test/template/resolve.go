package template

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Values are the values that a template cannot know by itself. All are optional, except for
// parameters without a default.
type Values struct {
	// StackName, Region, Account and Partition are the pseudo parameters; defaults "slipway",
	// "us-east-1", "000000000000", "aws".
	StackName, Region, Account, Partition string
	// Parameters replace the defaults of the template's parameters.
	Parameters map[string]string
	// References are the values of references to resources, by "Table" (Ref) or "Key.Arn"
	// (GetAtt). A reference to another resource gives the resource's name if the template
	// names it, else its logical id; ARNs of functions, state machines, tables and keys are
	// made of that.
	References map[string]string
}

// absent is the value of AWS::NoValue: a member with this value is left out.
type absent struct{}

// resolver replaces intrinsic functions.
type resolver struct {
	template   *Template
	parameters map[string]any
	values     Values
	conditions map[string]bool
}

func newResolver(t *Template, values Values) (*resolver, error) {
	for _, pseudo := range []struct {
		value    *string
		fallback string
	}{{&values.StackName, "slipway"}, {&values.Region, "us-east-1"}, {&values.Account, "000000000000"}, {&values.Partition, "aws"}} {
		if *pseudo.value == "" {
			*pseudo.value = pseudo.fallback
		}
	}
	r := &resolver{template: t, values: values, conditions: map[string]bool{}, parameters: map[string]any{
		"AWS::StackName": values.StackName, "AWS::Region": values.Region, "AWS::AccountId": values.Account, "AWS::Partition": values.Partition,
		"AWS::URLSuffix": "amazonaws.com", "AWS::NoValue": absent{},
		"AWS::StackId": "arn:" + values.Partition + ":cloudformation:" + values.Region + ":" + values.Account + ":stack/" + values.StackName + "/0",
	}}
	for name := range values.Parameters {
		if _, ok := t.Parameters[name]; !ok {
			return nil, fmt.Errorf("there is no parameter %s", name)
		}
	}
	for name, parameter := range t.Parameters {
		value, given := values.Parameters[name]
		if !given && parameter.Default == nil {
			return nil, fmt.Errorf("parameter %s needs a value", name)
		}
		if !given {
			value = *parameter.Default
		}
		if len(parameter.Allowed) > 0 && !slices.Contains(parameter.Allowed, value) {
			return nil, fmt.Errorf("parameter %s is %q, which is none of %q", name, value, parameter.Allowed)
		}
		if whole, err := regexp.Compile("^(?:" + parameter.Pattern + ")$"); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		} else if parameter.Pattern != "" && !whole.MatchString(value) {
			return nil, fmt.Errorf("parameter %s is %q, which does not match %s", name, value, parameter.Pattern)
		}
		r.parameters[name] = typed(parameter.Type, value)
	}
	return r, nil
}

// typed returns the value of a reference to a parameter.
func typed(kind, value string) any {
	switch {
	case kind == "Number":
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			return number
		}
	case kind == "CommaDelimitedList" || strings.HasPrefix(kind, "List<"):
		list := []any{}
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list
	}
	return value
}

// condition reports whether a named condition holds.
func (r *resolver) condition(name string) (bool, error) {
	if holds, known := r.conditions[name]; known {
		return holds, nil
	}
	definition, ok := r.template.conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %s", name)
	}
	holds, err := r.boolean(definition)
	if err != nil {
		return false, fmt.Errorf("condition %s: %w", name, err)
	}
	r.conditions[name] = holds
	return holds, nil
}

func (r *resolver) boolean(value any) (bool, error) {
	resolved, err := r.resolve(value)
	if err != nil {
		return false, err
	}
	holds, ok := resolved.(bool)
	if !ok {
		return false, fmt.Errorf("%v is no condition", value)
	}
	return holds, nil
}

// resolve replaces the intrinsic functions in a value.
func (r *resolver) resolve(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if name, argument, ok := call(v); ok {
			return r.apply(name, argument)
		}
		resolved := make(map[string]any, len(v))
		for name, member := range v {
			m, err := r.resolve(member)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if m != (absent{}) {
				resolved[name] = m
			}
		}
		return resolved, nil
	case []any:
		resolved := make([]any, 0, len(v))
		for _, item := range v {
			i, err := r.resolve(item)
			if err != nil {
				return nil, err
			}
			if i != (absent{}) {
				resolved = append(resolved, i)
			}
		}
		return resolved, nil
	default:
		return value, nil
	}
}

// call reports whether a map is a call of an intrinsic function.
func call(v map[string]any) (name string, argument any, ok bool) {
	if len(v) != 1 {
		return "", nil, false
	}
	for name, argument = range v {
		_, text := argument.(string)
		ok = strings.HasPrefix(name, "Fn::") || (text && (name == "Ref" || name == "Condition"))
	}
	return name, argument, ok
}

func (r *resolver) apply(name string, argument any) (any, error) {
	function, ok := map[string]func(*resolver, any) (any, error){
		"Ref": (*resolver).ref, "Condition": (*resolver).holds, "Fn::GetAtt": (*resolver).attribute, "Fn::Sub": (*resolver).sub,
		"Fn::Join": (*resolver).join, "Fn::Split": (*resolver).split, "Fn::Select": (*resolver).choose, "Fn::FindInMap": (*resolver).find,
		"Fn::If": (*resolver).either, "Fn::Equals": (*resolver).equals, "Fn::Not": (*resolver).not,
		"Fn::And": func(r *resolver, a any) (any, error) { return r.quantify(a, false) },
		"Fn::Or":  func(r *resolver, a any) (any, error) { return r.quantify(a, true) },
	}[name]
	if !ok {
		return nil, fmt.Errorf("%s is not understood", name)
	}
	value, err := function(r, argument)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}
