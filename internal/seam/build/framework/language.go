package framework

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
)

// Language is a language whose graphs a runtime of the platform can host. It has the name of
// the runtime's directory.
type Language string

// The languages that have a runtime.
const (
	Python Language = "python"
	Node   Language = "node"
)

// suffixes are the suffixes of files that a runtime can load.
var suffixes = map[string]Language{
	".py": Python,
	".js": Node, ".mjs": Node, ".cjs": Node, ".jsx": Node, ".ts": Node, ".mts": Node, ".cts": Node, ".tsx": Node,
}

var (
	pythonVersion = regexp.MustCompile(`^3\.(1[1-9]|[2-9][0-9])$`)
	nodeVersion   = regexp.MustCompile(`^(2[0-9]|[3-9][0-9])(\.[0-9]+){0,2}$`)
)

// wantedLanguage finds the runtime that a repository without a start command relies on: the
// runtime for the files of all its graphs.
func (p *parser) wantedLanguage() {
	languages := map[Language]bool{}
	for _, file := range p.config.files {
		// A Python module may be named by its dotted name, too.
		kind, known := suffixes[filepath.Ext(file)]
		if !known && (p.has("dependencies") || p.has("source")) && !strings.Contains(file, "/") {
			kind, known = Python, true
		}
		if !known {
			p.problem("start: is missing; it must be the command that starts the agent, as the file %q is neither Python nor JavaScript", file)
			return
		}
		languages[kind] = true
	}
	switch {
	case len(languages) > 1:
		p.problem("graphs: must be all Python or all JavaScript; one agent has one runtime. Give each language a configuration file and a deployment of its own")
	case languages[Python]:
		p.config.Language = Python
		p.config.Version = p.versionOf("python_version", pythonVersion, `"3.11" or newer, as major.minor`)
		if p.has("source") {
			p.source()
		} else {
			p.pythonDependencies()
		}
	case languages[Node]:
		p.config.Language = Node
		p.config.Version = p.versionOf("node_version", nodeVersion, `"20" or newer`)
		p.ownDirectory()
	}
}

// versionOf reads the version of a language, which may be a number in JSON.
func (p *parser) versionOf(field string, valid *regexp.Regexp, what string) string {
	if !p.has(field) {
		return ""
	}
	var version string
	if json.Unmarshal(p.fields[field], &version) != nil {
		var number json.Number
		if json.Unmarshal(p.fields[field], &number) != nil {
			p.problem("%s: must be a string", field)
			return ""
		}
		version = number.String()
	}
	if !valid.MatchString(version) {
		p.problem("%s: must be %s", field, what)
	}
	return version
}
