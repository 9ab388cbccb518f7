package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"
)

// Template is a template as it is written: with unresolved parameters, and intrinsic functions
// in their long form ({"Ref": "Table"}).
type Template struct {
	Parameters map[string]Parameter
	// Resources are all resources, also the resources with a condition.
	Resources map[string]Resource

	conditions map[string]any
	mappings   map[string]any
	globals    map[string]map[string]any
	outputs    map[string]any
}

// Parameter is a parameter of the template.
type Parameter struct {
	Type string
	// Default is nil if a value must be given.
	Default *string
	Allowed []string
	// Pattern is the pattern that the whole value must match, "" if there is no rule.
	Pattern string
}

// Resource is one resource as it is written or, in a Stack, resolved.
type Resource struct {
	// Name is the logical id.
	Name, Type string
	// Condition is the name of the condition under which it exists; "" if it always exists.
	Condition                           string
	DeletionPolicy, UpdateReplacePolicy string
	DependsOn                           []string
	Metadata                            map[string]any
	Properties                          map[string]any
	// Comment is the comment above the resource, without the "#".
	Comment string
}

// Load reads a template from a file.
func Load(path string) (*Template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read template %s: %w", path, err)
	}
	return t, nil
}

// Parse reads a template's text.
func Parse(text []byte) (*Template, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if len(root.Content) == 0 {
		return nil, errors.New("parse: the document is empty")
	}
	value, err := decode(root.Content[0])
	if err != nil {
		return nil, err
	}
	var document struct {
		Parameters map[string]struct {
			Type          string
			Default       any
			AllowedValues []any

			AllowedPattern string
		}
		Conditions, Mappings, Outputs map[string]any
		Globals                       map[string]map[string]any
		Resources                     map[string]struct {
			Type, Condition, DeletionPolicy, UpdateReplacePolicy string
			DependsOn                                            oneOrMany
			Metadata, Properties                                 map[string]any
		}
	}
	if err := convert(value, &document); err != nil {
		return nil, err
	}
	t := &Template{
		Parameters: map[string]Parameter{}, Resources: map[string]Resource{},
		conditions: document.Conditions, mappings: document.Mappings, globals: document.Globals, outputs: document.Outputs,
	}
	for name, p := range document.Parameters {
		parameter := Parameter{Type: p.Type, Pattern: p.AllowedPattern}
		if p.Default != nil {
			parameter.Default = new(scalar(p.Default))
		}
		for _, allowed := range p.AllowedValues {
			parameter.Allowed = append(parameter.Allowed, scalar(allowed))
		}
		t.Parameters[name] = parameter
	}
	comments := commentsOf(root.Content[0], "Resources")
	for name, r := range document.Resources {
		t.Resources[name] = Resource{
			Name: name, Type: r.Type, Condition: r.Condition, DeletionPolicy: r.DeletionPolicy, UpdateReplacePolicy: r.UpdateReplacePolicy,
			DependsOn: r.DependsOn, Metadata: r.Metadata, Properties: r.Properties, Comment: comments[name],
		}
	}
	return t, nil
}

// oneOrMany is a list of texts. A single text may be written without a list.
type oneOrMany []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(text, &many); err != nil {
		return err
	}
	*o = many
	return nil
}

// flag is a boolean, which a parameter gives as text.
type flag bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *flag) UnmarshalJSON(text []byte) error {
	var known bool
	if err := json.Unmarshal(bytes.Trim(text, `"`), &known); err != nil {
		return err
	}
	*f = flag(known)
	return nil
}

// convert reads a decoded value into a Go value by the names of its members.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
