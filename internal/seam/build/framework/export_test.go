package framework

import "slices"

// built are the keys for the builder alone: a runtime in an image that was built elsewhere has
// nothing to do with them.
var built = []string{"pip_config_file", "pip_installer", "package_manager", "keep_pkg_tools", "dockerfile_lines", "base_image", "image_distro"}

// AskedKeys returns the keys that a runtime refuses unless the platform says that it has read them.
func AskedKeys() []string {
	var asked []string
	for name, key := range keys {
		if !slices.Contains(built, name) && (key.refused != "" || key.read) {
			asked = append(asked, name)
		}
	}
	slices.Sort(asked)
	return asked
}
