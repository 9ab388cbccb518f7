package framework

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/ini.v1"
)

// pipSettings are the settings of pip that choose where packages come from, with the variables
// that say the same to uv, and the text between several values there.
// Source: pip's "Configuration" and uv's "Environment variables".
var pipSettings = map[string]struct{ variable, between string }{
	"index-url":       {"UV_DEFAULT_INDEX", ""},
	"extra-index-url": {"UV_INDEX", " "},
	"find-links":      {"UV_FIND_LINKS", ","},
	"trusted-host":    {"UV_INSECURE_HOST", " "},
	"timeout":         {"UV_HTTP_TIMEOUT", ""},
	"retries":         {"UV_HTTP_RETRIES", ""},
}

// pipSections are the sections of the file that are read. The settings of a later section replace
// the settings of an earlier section, wherever the sections stand in the file.
var pipSections = []string{"global", "install"}

// pipNeedless are settings of pip that ask for nothing that this platform does otherwise.
var pipNeedless = []string{"cache-dir", "disable-pip-version-check", "no-cache-dir", "no-color", "no-input", "progress-bar", "quiet", "root-user-action", "verbose"}

// pipFile reads the settings of pip from the file that the configuration file names. uv gets them
// as variables, and chooses between several indexes as pip does.
func (p *parser) pipFile() {
	var name string
	if !asks(p.fields["pip_config_file"]) {
		return
	}
	if json.Unmarshal(p.fields["pip_config_file"], &name) != nil || p.leaves(name) {
		p.problem(`pip_config_file: must be the path of a file in the repository, as "pip.conf"`)
		return
	}
	text, err := readFile(p.root, filepath.Join(p.config.Dir, name))
	if err != nil {
		p.problem("pip_config_file: %q cannot be read: %v", name, err)
		return
	}
	file, err := ini.LoadSources(ini.LoadOptions{AllowPythonMultilineValues: true, IgnoreInlineComment: true}, text)
	if err != nil {
		p.problem("pip_config_file: %q is not a file of settings: %v", name, err)
		return
	}
	for _, section := range file.Sections() {
		if !slices.Contains(pipSections, section.Name()) && len(section.Keys()) > 0 {
			p.problem("pip_config_file: settings of pip must be in the section global or install, not in %.40q", section.Name())
		}
	}
	settings := map[string]string{}
	for _, name := range pipSections {
		for _, key := range file.Section(name).Keys() {
			settings[strings.ReplaceAll(key.Name(), "_", "-")] = key.Value()
		}
	}
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		p.pipSetting(setting, strings.Fields(settings[setting]))
	}
	if len(p.config.Pip) > 0 {
		p.config.Pip = append(p.config.Pip, "UV_INDEX_STRATEGY=unsafe-best-match")
	}
}

// pipSetting reads one setting of pip.
func (p *parser) pipSetting(setting string, values []string) {
	to, known := pipSettings[setting]
	switch {
	case slices.Contains(pipNeedless, setting) || (known && len(values) == 0):
	case !known:
		p.problem("pip_config_file: the setting %.40q is not used here", setting)
	case to.between == "" && len(values) != 1:
		p.problem("pip_config_file: %s: must have one value", setting)
	case slices.ContainsFunc(values, func(value string) bool { return !isPlainSetting(value) }):
		p.problem("pip_config_file: %s: must not have quotes, dollar signs or backslashes", setting)
	default:
		p.config.Pip = append(p.config.Pip, to.variable+"="+strings.Join(values, to.between))
	}
}

// isPlainSetting reports whether a value means the same in a file, in a variable and in a shell's
// quotes.
func isPlainSetting(value string) bool {
	return !strings.ContainsAny(value, "'\"`$\\") && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

// pipTools are the tools that a repository may ask for.
var pipTools = []string{"pip", "setuptools", "wheel"}

// packageTools reads keep_pkg_tools: true for all tools, or a list of tools.
func (p *parser) packageTools() {
	value := p.fields["keep_pkg_tools"]
	if !asks(value) {
		return
	}
	var all bool
	if json.Unmarshal(value, &all) == nil {
		p.config.Tools = pipTools
		return
	}
	var tools []string
	if json.Unmarshal(value, &tools) != nil || slices.ContainsFunc(tools, func(tool string) bool { return !slices.Contains(pipTools, tool) }) {
		p.problem(`keep_pkg_tools: must be true, or a list of "pip", "setuptools" and "wheel"`)
		return
	}
	p.config.Tools = tools
}
