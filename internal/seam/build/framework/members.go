package framework

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// object reads the members of a key whose value is an object. members are the known members: each
// with a pointer to its value, which stays as it is without the member, or with the reason, as a
// string, why the member is refused, or nil for a member that only the runtime reads. object
// reports whether the key asks for an object.
func (p *parser) object(name, example string, members map[string]any) bool {
	return p.objectIn(name, p.fields[name], example, members)
}

// objectIn is object for a value in an object. path is the name of the value in problems.
func (p *parser) objectIn(path string, value json.RawMessage, example string, members map[string]any) bool {
	if !asks(value) {
		return false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		p.problem("%s: must be an object, as %s", path, example)
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		into, known := members[name]
		refusal, refused := into.(string)
		switch {
		case !known || refused:
			if asks(fields[name]) {
				p.problem("%s.%s: %s", path, name, cmp.Or(refusal, "is not a key of "+path))
			}
		case into == nil || string(fields[name]) == "null":
		case json.Unmarshal(fields[name], into) != nil:
			p.problem("%s.%s: must be %s", path, name, kindOf(into))
		}
	}
	return true
}

// flag is true or false. The public documentation has also written it as a string.
type flag bool

// UnmarshalJSON reads a boolean, or a string that spells a boolean.
func (f *flag) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(bytes.Trim(text, `"`), (*bool)(f))
}

// kindOf returns the name of a member's type in problems.
func kindOf(value any) string {
	switch value.(type) {
	case *bool, **bool, *flag:
		return "true or false"
	case *string:
		return "a string"
	case *[]string:
		return "a list of strings"
	case *[]int:
		return "a list of whole numbers"
	case *int, **int:
		return "a whole number"
	case **float64:
		return "a number"
	}
	return "an object of strings"
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
