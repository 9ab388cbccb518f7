package template

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

func (r *resolver) ref(argument any) (any, error) {
	name := scalar(argument)
	if value, ok := r.parameters[name]; ok {
		return value, nil
	}
	return r.reference(name, "")
}

func (r *resolver) holds(argument any) (any, error) { return r.condition(scalar(argument)) }

func (r *resolver) attribute(argument any) (any, error) {
	parts, err := r.list(argument, 2)
	if err != nil {
		return nil, err
	}
	return r.reference(scalar(parts[0]), scalar(parts[1]))
}

// reference returns the value of a reference to a resource or, with an attribute, to an
// attribute of the resource.
func (r *resolver) reference(name, attribute string) (any, error) {
	resource, ok := r.template.Resources[name]
	if !ok {
		return r.made(name)
	}
	full := name
	if attribute != "" {
		full += "." + attribute
	}
	if value, ok := r.values.References[full]; ok {
		return value, nil
	}
	physical := name
	if given := resource.Properties[nameProperty[resource.Type]]; given != nil {
		resolved, err := r.resolve(given)
		if err != nil {
			return nil, err
		}
		physical = scalar(resolved)
	}
	format, hasARN := arns[resource.Type]
	arn := "arn:" + r.values.Partition + ":" + strings.NewReplacer(
		"{region}", r.values.Region, "{account}", r.values.Account, "{name}", physical).Replace(format)
	switch {
	case hasARN && (attribute == "Arn" || (attribute == "" && resource.Type == typeMachine)):
		return arn, nil
	case attribute == "" || attribute == "Name":
		return physical, nil
	default:
		return full, nil
	}
}

// made returns the value of a reference to a resource that SAM makes of another resource: the stage
// of an API, or the alias of a function.
func (r *resolver) made(name string) (any, error) {
	of, made, _ := strings.Cut(name, ".")
	switch resource := r.template.Resources[of]; {
	case made == "Stage" && resource.Type == typeAPI:
		return r.reference(of, "Stage")
	case made == "Alias" && resource.Type == typeFunction:
		alias := r.template.alias(resource)
		arn, err := r.reference(of, "Arn")
		if alias == "" && err == nil {
			err = fmt.Errorf("function %s has no alias", of)
		}
		return scalar(arn) + ":" + alias, err
	default:
		return nil, fmt.Errorf("there is no resource %s", name)
	}
}

var placeholder = regexp.MustCompile(`\$\{([^!][^}]*)\}`)

func (r *resolver) sub(argument any) (any, error) {
	text, local := argument, map[string]any{}
	if parts, ok := argument.([]any); ok && len(parts) == 2 {
		resolved, err := r.resolve(parts[1])
		if err != nil {
			return nil, err
		}
		text = parts[0]
		local, _ = resolved.(map[string]any)
	}
	format, ok := text.(string)
	if !ok {
		return nil, fmt.Errorf("%v is no text", text)
	}
	var problem error
	result := placeholder.ReplaceAllStringFunc(format, func(found string) string {
		name := strings.TrimSpace(found[2 : len(found)-1])
		value, err := local[name], error(nil)
		if value == nil {
			if resource, attribute, ok := strings.Cut(name, "."); ok && attribute != "Alias" {
				value, err = r.reference(resource, attribute)
			} else {
				value, err = r.ref(name)
			}
		}
		if err != nil && problem == nil {
			problem = err
		}
		return scalar(value)
	})
	return strings.ReplaceAll(result, "${!", "${"), problem
}

func (r *resolver) join(argument any) (any, error) {
	parts, err := r.list(argument, 2)
	if err != nil {
		return nil, err
	}
	items, err := r.list(parts[1], -1)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = scalar(item)
	}
	return strings.Join(texts, scalar(parts[0])), nil
}

func (r *resolver) split(argument any) (any, error) {
	parts, err := r.list(argument, 2)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for item := range strings.SplitSeq(scalar(parts[1]), scalar(parts[0])) {
		items = append(items, item)
	}
	return items, nil
}

func (r *resolver) choose(argument any) (any, error) {
	parts, err := r.list(argument, 2)
	if err != nil {
		return nil, err
	}
	items, err := r.list(parts[1], -1)
	if err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(scalar(parts[0]))
	if err != nil || index < 0 || index >= len(items) {
		return nil, fmt.Errorf("there is no item %v in %v", parts[0], items)
	}
	return items[index], nil
}

func (r *resolver) find(argument any) (any, error) {
	parts, err := r.list(argument, 3)
	if err != nil {
		return nil, err
	}
	var value any = r.template.mappings
	for _, name := range parts {
		members, _ := value.(map[string]any)
		if value = members[scalar(name)]; value == nil {
			return nil, fmt.Errorf("there is no %v", name)
		}
	}
	return value, nil
}

func (r *resolver) either(argument any) (any, error) {
	parts, ok := argument.([]any)
	if !ok || len(parts) != 3 {
		return nil, fmt.Errorf("%v are not a condition and two values", argument)
	}
	holds, err := r.condition(scalar(parts[0]))
	if err != nil {
		return nil, err
	}
	if holds {
		return r.resolve(parts[1])
	}
	return r.resolve(parts[2])
}

func (r *resolver) equals(argument any) (any, error) {
	parts, err := r.list(argument, 2)
	if err != nil {
		return nil, err
	}
	return scalar(parts[0]) == scalar(parts[1]), nil
}

func (r *resolver) not(argument any) (any, error) {
	parts, err := r.list(argument, 1)
	if err != nil {
		return nil, err
	}
	holds, err := r.boolean(parts[0])
	return !holds, err
}

// quantify is Fn::Or if the first true decides, Fn::And if the first false decides.
func (r *resolver) quantify(argument any, decided bool) (any, error) {
	parts, err := r.list(argument, -1)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		if holds, err := r.boolean(part); err != nil || holds == decided {
			return holds, err
		}
	}
	return !decided, nil
}

// list resolves an argument that is a list of n values, or of any number of values if n is
// negative.
func (r *resolver) list(argument any, n int) ([]any, error) {
	resolved, err := r.resolve(argument)
	if err != nil {
		return nil, err
	}
	items, ok := resolved.([]any)
	if !ok || (n >= 0 && len(items) != n) {
		return nil, fmt.Errorf("%v is not a list of the right length", resolved)
	}
	return items, nil
}

// scalar returns a scalar as text.
func scalar(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any: // a list parameter within Fn::Sub or Fn::Equals
		texts := make([]string, len(v))
		for i, item := range v {
			texts[i] = scalar(item)
		}
		return strings.Join(texts, ",")
	default:
		return fmt.Sprint(v)
	}
}
