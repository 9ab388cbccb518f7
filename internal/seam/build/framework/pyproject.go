package framework

import (
	"bytes"

	"github.com/BurntSushi/toml"
)

// pyproject is the part of a pyproject.toml that determines how its package is resolved and
// installed; see PEP 621 for the project, and each tool's manual for its table.
type pyproject struct {
	Project struct {
		Name           string   `toml:"name"`
		Dynamic        []string `toml:"dynamic"`
		RequiresPython string   `toml:"requires-python"`
	} `toml:"project"`
	Tool struct {
		UV     map[string]any `toml:"uv"`
		Poetry map[string]any `toml:"poetry"`
		PDM    map[string]any `toml:"pdm"`
		Hatch  struct {
			Metadata map[string]any `toml:"metadata"`
		} `toml:"hatch"`
	} `toml:"tool"`

	// valid reports whether the file could be read. The resolver has a better message about an
	// error in the file.
	valid bool
	// files reports whether the file may name files of the repository by their URLs.
	files bool
}

func readPyproject(text []byte) pyproject {
	var p pyproject
	if err := toml.Unmarshal(text, &p); err != nil {
		return pyproject{} // without the values that were read before the error
	}
	p.valid, p.files = true, bytes.Contains(text, []byte("file:"))
	return p
}

// alone reports whether the package's requirements follow from this file only.
func (p pyproject) alone() bool {
	return p.valid && p.Project.Name != "" && len(p.Project.Dynamic) == 0 && !p.files &&
		p.Tool.UV == nil && p.Tool.Poetry == nil && p.Tool.PDM == nil && p.Tool.Hatch.Metadata == nil
}

// hasSettings reports whether the file may contain settings of uv.
func (p pyproject) hasSettings() bool { return !p.valid || p.Tool.UV != nil }
