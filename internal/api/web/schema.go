package web

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schema is a compiled schema together with its document, which the wording of problems needs.
type schema struct {
	compiled *jsonschema.Schema
	document document
}

func (l *loader) schema(at pointer) (*schema, error) {
	compiled, err := l.compiler.Compile(at.url())
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", at.url(), err)
	}
	return &schema{compiled: compiled, document: l.document}, nil
}

// validate returns the problems of a value at the place loc.
func (s *schema) validate(value any, loc ...any) problems {
	err := s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return problems{newProblem(loc, "value_error", err.Error())}
	}
	t := translation{document: s.document, value: value, loc: loc}
	return t.problems(invalid)
}

// translation puts the findings of the schema validator into the interface's words.
type translation struct {
	document document
	value    any
	loc      []any
}

// problems walks the tree of findings down to its leaves.
func (t translation) problems(e *jsonschema.ValidationError) problems {
	switch found := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return t.closest(e)
	case *kind.Required:
		var missing problems
		for _, name := range found.Missing {
			missing = append(missing, newProblem(append(t.at(e.InstanceLocation), name), "missing", "Field required"))
		}
		return missing
	}
	if len(e.Causes) == 0 {
		return problems{t.leaf(e)}
	}
	var all problems
	for _, cause := range e.Causes {
		all = append(all, t.problems(cause)...)
	}
	return all
}

// closest returns the problems of the alternative that the client most likely meant: the first
// alternative whose JSON type fits, or else the first alternative that is not null.
func (t translation) closest(e *jsonschema.ValidationError) problems {
	var fallback problems
	for _, alternative := range e.Causes {
		if wantsNull(alternative) {
			continue
		}
		all := t.problems(alternative)
		if !mismatched(all, t.at(e.InstanceLocation)) {
			return all
		}
		if fallback == nil {
			fallback = all
		}
	}
	return fallback
}

// mismatched reports whether an alternative failed because of the JSON type of the value at a
// place, not of a value inside of it.
func mismatched(all problems, at []any) bool {
	return len(all) == 1 && all[0].mismatch && len(all[0].Loc) == len(at)
}

func wantsNull(e *jsonschema.ValidationError) bool {
	mismatch, ok := e.ErrorKind.(*kind.Type)
	return ok && slices.Equal(mismatch.Want, []string{"null"})
}

// at returns the place of a value in the request. Indexes of arrays are numbers.
func (t translation) at(instance []string) []any {
	loc, value := slices.Clone(t.loc), t.value
	for _, token := range instance {
		switch v := value.(type) {
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(v) {
				return append(loc, token)
			}
			loc, value = append(loc, i), v[i]
		case map[string]any:
			loc, value = append(loc, token), v[token]
		default:
			loc = append(loc, token)
		}
	}
	return loc
}
