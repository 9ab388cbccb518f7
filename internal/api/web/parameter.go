package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// parameter describes what a value in the path, the query or a header must look like.
type parameter struct {
	in, name string
	required bool
	// uuid texts are read in lower case, the form in which ids are stored.
	uuid bool
	// kind is the JSON type of the value, or of the items when the value is a list.
	kind string
	list bool
	// words says that the items of the list are words of an enumeration, which have no commas.
	words bool
	*schema
}

func (l *loader) parameter(at pointer) (*parameter, error) {
	at, err := l.document.follow(at)
	if err != nil {
		return nil, err
	}
	definition := object(l.document.at(at))
	p := &parameter{required: definition["required"] == true}
	p.name, _ = definition["name"].(string)
	p.in, _ = definition["in"].(string)
	if !slices.Contains([]string{"path", "query", "header"}, p.in) || p.name == "" {
		return nil, fmt.Errorf("parameter at %s: a name, and in path, query or header, are needed", at.url())
	}
	at = at.child("schema")
	if p.schema, err = l.schema(at); err != nil {
		return nil, fmt.Errorf("parameter %s: %w", p.name, err)
	}
	if _, err := l.shape(at, map[string]*shape{}); err != nil {
		return nil, fmt.Errorf("parameter %s: %w", p.name, err)
	}
	if err := l.describe(p, at); err != nil {
		return nil, fmt.Errorf("parameter %s: %w", p.name, err)
	}
	return p, nil
}

// describe sets the fields of the parameter that decoding its text needs from its schema.
func (l *loader) describe(p *parameter, at pointer) error {
	at, err := l.document.follow(at)
	if err != nil {
		return err
	}
	definition := object(l.document.at(at))
	p.list = definition["type"] == "array"
	if p.list {
		if at, err = l.document.follow(at.child("items")); err != nil {
			return err
		}
		definition = object(l.document.at(at))
		p.words = definition["enum"] != nil
	}
	p.uuid = definition["format"] == "uuid"
	p.kind, _ = definition["type"].(string)
	if !slices.Contains([]string{"string", "integer", "number", "boolean"}, p.kind) {
		return errors.New("its type must be a string, an integer, a number, a boolean, or a list of them")
	}
	return nil
}

// checkParameters checks all parameters, and rewrites the parameters whose text the generated
// binder would read differently.
func checkParameters(parameters []*parameter, r *http.Request) problems {
	var all problems
	var query url.Values
	rewritten := false
	for _, p := range parameters {
		switch p.in {
		case "path":
			all = append(all, p.checkPath(r)...)
		case "header":
			all = append(all, p.checkValues(r.Header.Values(p.name))...)
		case "query":
			if query == nil {
				var err error
				if query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
					// The parts that cannot be read may be what the client means most.
					return append(all, newProblem([]any{"query"}, "query_parsing",
						"Input should be parameters with & between them, in which % begins two hexadecimal digits"))
				}
			}
			values, changed := p.normalize(query[p.name])
			if changed {
				query[p.name], rewritten = values, true
			}
			all = append(all, p.checkValues(values)...)
		}
	}
	if rewritten {
		u := *r.URL
		u.RawQuery = query.Encode()
		r.URL = &u
	}
	return all
}

// checkPath checks a part of the path.
func (p *parameter) checkPath(r *http.Request) problems {
	value := r.PathValue(p.name)
	if p.uuid {
		if lower := strings.ToLower(value); lower != value {
			r.SetPathValue(p.name, lower)
		}
	}
	return p.checkValues([]string{value})
}

// normalize takes the last of several values if the schema wants one value. If the schema wants
// a list, it takes the items of JSON arrays and words between commas, and leaves out empty values:
// a client that has nothing to name may still name the parameter.
func (p *parameter) normalize(values []string) ([]string, bool) {
	values, changed := p.choose(values)
	if !p.uuid {
		return values, changed
	}
	lower := make([]string, len(values))
	for i, value := range values {
		lower[i] = strings.ToLower(value)
	}
	return lower, changed || !slices.Equal(lower, values)
}

func (p *parameter) choose(values []string) ([]string, bool) {
	if !p.list && len(values) > 1 {
		return values[len(values)-1:], true
	}
	several := func(value string) bool { return p.words && strings.Contains(value, ",") }
	if !p.list || !slices.ContainsFunc(values, func(value string) bool { return value == "" || value[0] == '[' || several(value) }) {
		return values, false
	}
	chosen := []string{}
	for _, value := range values {
		var items []string
		switch {
		case value == "":
		case value[0] == '[' && json.Unmarshal([]byte(value), &items) == nil:
			chosen = append(chosen, items...)
		case several(value):
			for word := range strings.SplitSeq(value, ",") {
				chosen = append(chosen, strings.TrimSpace(word))
			}
		default:
			chosen = append(chosen, value)
		}
	}
	return chosen, true
}

// mostItems is how many items of a list a parameter may have, whatever its schema says. Each item
// may be a problem, which takes more memory and more of the answer than the item.
const mostItems = 1000

func (p *parameter) checkValues(values []string) problems {
	loc := []any{p.in, p.name}
	if p.list && len(values) > mostItems {
		return problems{newProblem(loc, "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", mostItems, len(values)))}
	}
	if len(values) == 0 {
		if p.required {
			return problems{newProblem(loc, "missing", "Field required")}
		}
		return nil
	}
	if !p.list {
		value, all := p.parse(values[0], loc)
		if all != nil {
			return all
		}
		return p.validate(value, loc...)
	}
	var itemProblems problems
	items := make([]any, len(values))
	for i, text := range values {
		item, wrong := p.parse(text, append(loc, i))
		items[i], itemProblems = item, append(itemProblems, wrong...)
	}
	if itemProblems != nil {
		return itemProblems
	}
	return p.validate(items, loc...)
}

// parse reads a parameter's text as the JSON type of its schema.
func (p *parameter) parse(text string, loc []any) (value any, valueProblems problems) {
	kind, valid := "", true
	switch p.kind {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		kind, value, valid = "int_parsing", n, err == nil
	case "number":
		f, err := strconv.ParseFloat(text, 64)
		kind, value, valid = "float_parsing", f, err == nil && f-f == 0
	case "boolean":
		b, err := strconv.ParseBool(text)
		kind, value, valid = "bool_parsing", b, err == nil
	default:
		value = text
	}
	if !valid {
		return nil, problems{newProblem(loc, kind, "Input should be a valid "+p.kind+", unable to parse string")}
	}
	return value, nil
}
