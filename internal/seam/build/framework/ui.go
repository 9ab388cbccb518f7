package framework

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// componentsName matches the names under which components of a user interface are served.
var componentsName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// ui checks which files have components of a user interface. The builder bundles the files, and
// the runtime serves the bundles.
func (p *parser) ui() {
	var shared []string
	p.object("ui_config", `{"shared": ["some-package"]}`, map[string]any{"shared": &shared})
	if !asks(p.fields["ui"]) {
		return
	}
	var files map[string]string
	if json.Unmarshal(p.fields["ui"], &files) != nil {
		p.problem(`ui: must be an object of files, as {"agent": "./src/ui.tsx"}`)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case !componentsName.MatchString(name):
			p.problem("ui: the name %q must be 1 to 128 letters, digits, dots, dashes and underscores, and begin with a letter, a digit or an underscore", name)
		case files[name] == "" || p.leaves(files[name]):
			p.problem("ui.%s: must be a file of the repository, as \"./src/ui.tsx\"", name)
		}
	}
	if p.config.Settings.HTTP == nil {
		p.config.Settings.HTTP = &build.HTTP{}
	}
	p.config.Settings.HTTP.UI = true
}
