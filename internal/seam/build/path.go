package build

import (
	"fmt"
	"strings"
)

// The bounds for the paths in a source. The system has larger ones for a path with the path of the
// server's directory before it.
const (
	maxPath   = 3072
	maxName   = 255
	maxLevels = 100
)

// TroubleWithPath says why a source must not have a path, "" if it may. The builder makes one
// directory for each level of a path: a small source must not become a tree that nobody can handle.
func TroubleWithPath(path string) string {
	if len(path) > maxPath {
		return fmt.Sprintf("the path that begins with %.100q is longer than %d bytes", path, maxPath)
	}
	if strings.Count(path, "/") > maxLevels {
		return fmt.Sprintf("the path that begins with %.100q has more than %d directories", path, maxLevels)
	}
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > maxName {
			return fmt.Sprintf("the name that begins with %.100q is longer than %d bytes", name, maxName)
		}
	}
	return ""
}
