package web

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Ranks of problems of the same value.
const (
	rankType = iota
	rankLength
	rankOther
)

// leaf names one finding in the way pydantic does, because clients of the interface know these
// names.
func (t translation) leaf(e *jsonschema.ValidationError) problem {
	name, message := t.words(e)
	leafProblem := newProblem(t.at(e.InstanceLocation), name, message)
	leafProblem.rank = rankOther
	switch e.ErrorKind.(type) {
	case *kind.Type:
		leafProblem.rank, leafProblem.mismatch = rankType, true
	case *kind.MinLength, *kind.MaxLength:
		leafProblem.rank = rankLength
	}
	return leafProblem
}

func (t translation) words(e *jsonschema.ValidationError) (name, message string) {
	switch found := e.ErrorKind.(type) {
	case *kind.Type:
		return t.typeWords(e, found)
	case *kind.Enum:
		return enumWords(found.Want)
	case *kind.Format:
		return formatWords(found.Want)
	case *kind.Pattern:
		return "string_pattern_mismatch", fmt.Sprintf("String should match pattern '%s'", found.Want)
	case *kind.MinLength:
		return "string_too_short", "String should have at least " + count(found.Want, "character")
	case *kind.MaxLength:
		return "string_too_long", "String should have at most " + count(found.Want, "character")
	case *kind.MinItems:
		return "too_short", fmt.Sprintf("List should have at least %s after validation, not %d", count(found.Want, "item"), found.Got)
	case *kind.MaxItems:
		return "too_long", fmt.Sprintf("List should have at most %s after validation, not %d", count(found.Want, "item"), found.Got)
	}
	return numberWords(e)
}

func numberWords(e *jsonschema.ValidationError) (name, message string) {
	switch found := e.ErrorKind.(type) {
	case *kind.Minimum:
		return "greater_than_equal", "Input should be greater than or equal to " + decimal(found.Want)
	case *kind.Maximum:
		return "less_than_equal", "Input should be less than or equal to " + decimal(found.Want)
	case *kind.ExclusiveMinimum:
		return "greater_than", "Input should be greater than " + decimal(found.Want)
	case *kind.ExclusiveMaximum:
		return "less_than", "Input should be less than " + decimal(found.Want)
	case *kind.MultipleOf:
		return "multiple_of", "Input should be a multiple of " + decimal(found.Want)
	}
	return "value_error", "Input is not valid"
}

// typeWords names the wanted type, by the schema's keywords beyond the JSON type.
func (t translation) typeWords(e *jsonschema.ValidationError, typeError *kind.Type) (name, message string) {
	wanted := t.schemaOf(e)
	want := slices.DeleteFunc(slices.Clone(typeError.Want), func(name string) bool { return name == "null" })
	if len(want) == 0 {
		return "none_required", "Input should be None"
	}
	if values := list(wanted["enum"]); values != nil {
		return enumWords(values)
	}
	switch want[0] {
	case "string":
		return stringWords(wanted["format"])
	case "integer":
		if typeError.Got == "number" {
			return "int_from_float", "Input should be a valid integer, got a number with a fractional part"
		}
		return "int_type", "Input should be a valid integer"
	case "number":
		return "float_type", "Input should be a valid number"
	case "boolean":
		return "bool_type", "Input should be a valid boolean"
	case "array":
		return "list_type", "Input should be a valid list"
	}
	if wanted["properties"] != nil {
		return "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"
	}
	return "dict_type", "Input should be a valid dictionary"
}

func stringWords(format any) (name, message string) {
	switch format {
	case "uuid":
		return "uuid_type", "UUID input should be a string"
	case "date-time":
		return "datetime_type", "Input should be a valid datetime"
	case "uri", "uri-reference":
		return "url_type", "URL input should be a string"
	}
	return "string_type", "Input should be a valid string"
}

func formatWords(format string) (name, message string) {
	switch format {
	case "uuid":
		return "uuid_parsing", "Input should be a valid UUID"
	case "date-time":
		return "datetime_parsing", "Input should be a valid datetime"
	case "uri", "uri-reference":
		return "url_parsing", "Input should be a valid URL"
	}
	return "value_error", "Input should be a valid " + format
}

// enumWords lists the values as pydantic does: 'a', 'b' or 'c'.
func enumWords(values []any) (name, message string) {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = fmt.Sprintf("'%v'", value)
	}
	last := len(quoted) - 1
	if last == 0 {
		return "enum", "Input should be " + quoted[0]
	}
	return "enum", fmt.Sprintf("Input should be %s or %s", strings.Join(quoted[:last], ", "), quoted[last])
}

// schemaOf returns the schema that the finding is about.
func (t translation) schemaOf(e *jsonschema.ValidationError) map[string]any {
	p, err := parsePointer(e.SchemaURL)
	if err != nil {
		return nil // the document's root: it is no schema, and nothing is validated against it
	}
	return object(t.document.at(p))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(6), "0")
}
