package framework

import "slices"

// built are the keys for the builder alone: a runtime in an image that was built elsewhere has
// nothing to do with them.
var built = []string{"pip_config_file", "pip_installer", "package_manager", "keep_pkg_tools", "dockerfile_lines", "base_image", "image_distro"}

// RuntimeKeys returns the keys that a runtime does not refuse.
func RuntimeKeys() []string {
	var served []string
	for name, key := range keys {
		if slices.Contains(built, name) || key.refused == "" && !key.read {
			served = append(served, name)
		}
	}
	slices.Sort(served)
	return served
}

// GraphKeys returns the keys of a graph.
func GraphKeys() []string { return graphKeys }
