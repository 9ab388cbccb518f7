package framework

import (
	"bytes"

	"github.com/BurntSushi/toml"
)

// pyproject is what a pyproject.toml says of how its package is resolved and installed; see PEP 621
// for the project, and each tool's manual for its table.
type pyproject struct {
	Project struct {
		Name    string   `toml:"name"`
		Dynamic []string `toml:"dynamic"`
	} `toml:"project"`
	Tool struct {
		UV     map[string]any `toml:"uv"`
		Poetry map[string]any `toml:"poetry"`
		PDM    map[string]any `toml:"pdm"`
		Hatch  struct {
			Metadata map[string]any `toml:"metadata"`
		} `toml:"hatch"`
	} `toml:"tool"`

	// valid tells whether it could be read. What is wrong with it, the resolver says better.
	valid bool
	// files tells whether it may name files of the repository by their URLs.
	files bool
}

func readPyproject(text []byte) pyproject {
	var p pyproject
	if err := toml.Unmarshal(text, &p); err != nil {
		return pyproject{} // and not what was read before the error
	}
	p.valid, p.files = true, bytes.Contains(text, []byte("file:"))
	return p
}

// alone tells whether the package's requirements follow from this file only.
func (p pyproject) alone() bool {
	return p.valid && p.Project.Name != "" && len(p.Project.Dynamic) == 0 && !p.files &&
		p.Tool.UV == nil && p.Tool.Poetry == nil && p.Tool.PDM == nil && p.Tool.Hatch.Metadata == nil
}

// hasSettings tells whether there may be settings of uv in it.
func (p pyproject) hasSettings() bool { return !p.valid || p.Tool.UV != nil }
