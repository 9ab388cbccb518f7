package framework

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// object reads a key whose value is an object with known members. A known member with a text
// is refused, and the text is the reason. The fields are nil if the key asks for nothing or is
// not an object.
func (p *parser) object(name, example string, known map[string]string) map[string]json.RawMessage {
	return p.objectIn(p.fields, name, name, example, known)
}

// objectIn is object for a member of an object. path is the name of the member in problems.
func (p *parser) objectIn(of map[string]json.RawMessage, name, path, example string, known map[string]string) map[string]json.RawMessage {
	value := of[name]
	if !asks(value) {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		p.problem("%s: must be an object, as %s", path, example)
		return nil
	}
	for _, member := range slices.Sorted(maps.Keys(fields)) {
		switch why, isKnown := known[member]; {
		case !isKnown && asks(fields[member]):
			p.problem("%s.%s: is not a key of %s", path, member, path)
		case why != "" && asks(fields[member]):
			p.problem("%s.%s: %s", path, member, why)
		}
	}
	return fields
}

// kindOf returns the name of a member's type in problems.
func kindOf(value any) string {
	switch value.(type) {
	case *bool:
		return "true or false"
	case *string:
		return "a string"
	case *[]string:
		return "a list of strings"
	case *[]int:
		return "a list of whole numbers"
	case **int:
		return "a whole number"
	case **float64:
		return "a number"
	case *map[string]string:
		return "an object of strings"
	}
	return "of another type"
}

// member reads a member of an object into a value. If there is no such member, the value stays
// as it is.
func (p *parser) member(fields map[string]json.RawMessage, path, name string, into any) {
	value := fields[name]
	if len(value) == 0 || string(value) == "null" {
		return
	}
	if json.Unmarshal(value, into) != nil {
		p.problem("%s.%s: must be %s", path, name, kindOf(into))
	}
}

// leaves reports whether the path of a file, which the configuration file names, leaves the
// repository.
func (p *parser) leaves(file string) bool {
	return filepath.IsAbs(file) || !filepath.IsLocal(filepath.Join(p.config.Dir, file))
}

// variable reads a member that names a variable of the repository, "path/to/file:variable",
// which the runtime of the graphs imports. It returns "" if the runtime cannot import it.
func (p *parser) variable(member string, value json.RawMessage) string {
	var path string
	if json.Unmarshal(value, &path) != nil {
		path = ""
	}
	at := strings.LastIndexByte(path, ':')
	if at <= 0 || at == len(path)-1 {
		p.problem(`%s: must be "path/to/file:variable"`, member)
		return ""
	}
	file := path[:at]
	language, known := suffixes[filepath.Ext(file)]
	if !known && !strings.Contains(file, "/") {
		language = Python // a module by its dotted name
	}
	switch {
	case p.config.Language == "":
		p.problem("%s: only the platform's runtimes import it; a program with a start command has no such thing", member)
	case language != p.config.Language:
		p.problem("%s: the runtime of the graphs cannot import %q: the %s runtime hosts them", member, file, p.config.Language)
	case p.leaves(file):
		p.problem("%s: the path %q leaves the repository", member, file)
	default:
		return path
	}
	return ""
}
