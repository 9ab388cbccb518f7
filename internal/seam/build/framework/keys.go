package framework

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// key is what the platform does with a key of the configuration file. Each key either works or is
// refused by its name: an agent is never served without something that its repository asks for.
type key struct {
	// refused says why a file with the key cannot be deployed, "" for a key that works.
	refused string
	// except are values, as JSON, that ask for nothing beyond what the platform does anyway. A
	// value that is null, false or empty asks for nothing under any key.
	except []string
	// language is the only one whose graphs the key is for, "" for all agents.
	language Language
}

// keys are those of the public format and of ours. A key that begins to work loses its refusal
// here, and in the runtimes' own lists where they have one.
var keys = map[string]key{
	"$schema":        {},
	"graphs":         {},
	"env":            {},
	"build":          {},
	"start":          {},
	"dependencies":   {}, // a JavaScript repository names its own directory
	"python_version": {language: Python},
	"node_version":   {language: Node},

	"source":           {language: Python},
	"pip_config_file":  {refused: "settings of pip are not used yet", language: Python},
	"pip_installer":    {refused: "packages are installed by uv alone", except: []string{`"auto"`, `"uv"`}, language: Python},
	"keep_pkg_tools":   {refused: "package tools cannot be chosen yet", language: Python},
	"dockerfile_lines": {refused: "lines of a Dockerfile are not used yet"},
	"base_image":       {refused: "the base image cannot be chosen yet"},
	"image_distro":     {refused: "the distribution of the image cannot be chosen yet", except: []string{`"debian"`}},
	"api_version":      {refused: "agents are served by this platform, which has no releases of that server"},

	"auth":         {refused: "the repository's own authentication is not run yet, and its agent is not served without it"},
	"encryption":   {refused: "the repository's own encryption is not run yet, and its agent is not served without it"},
	"http":         {refused: "the repository's own routes and HTTP settings are not served yet"},
	"store":        {refused: "the store takes no settings from a repository yet; TTLs can be given with each item"},
	"checkpointer": {refused: "checkpoints take no settings from a repository yet; a TTL can be given with each thread"},
	"webhooks":     {refused: "webhooks take no settings from a repository yet"},
	"ui":           {refused: "components of a user interface are not built yet"},
	"ui_config":    {refused: "components of a user interface are not built yet"},
}

// graphKeys are those of a graph that is an object; "" for one that works.
var graphKeys = map[string]string{"path": "", "description": "descriptions of graphs are shown nowhere yet"}

// keys refuses what the platform does not do, by name.
func (p *parser) keys() {
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		known, ok := keys[name]
		switch {
		case !ok:
			p.problem("%s: is not a key of the configuration file", name)
		case !asks(p.fields[name]) || slices.Contains(known.except, string(p.fields[name])):
		case known.refused != "":
			p.problem("%s: %s", name, known.refused)
		case known.language != "" && known.language != p.config.Language && len(p.config.files) > 0:
			p.problem("%s: is only for graphs that the %s runtime hosts", name, known.language)
		}
	}
}

// graphKeys refuses what the platform does not know of a graph that is an object.
func (p *parser) graphKeys(id string, value json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch refused, known := graphKeys[name]; {
		case !known:
			p.problem("graphs.%s.%s: is not a key of a graph", id, name)
		case refused != "" && asks(fields[name]):
			p.problem("graphs.%s.%s: %s", id, name, refused)
		}
	}
}

// asks reports whether a value asks for anything.
func asks(value json.RawMessage) bool {
	var anything any
	if json.Unmarshal(value, &anything) != nil {
		return true
	}
	switch v := anything.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return strings.TrimSpace(v) != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
