package build

import (
	"bytes"
	"fmt"
	"strings"
)

// The bounds for the paths in a source. The system has larger ones for a path with the path of the
// server's directory before it.
const (
	maxPath   = 3072
	maxName   = 255
	maxLevels = 100
	// maxFiles is how many files a commit may have. A small repository can stand for any number,
	// because a commit may have a directory many times.
	maxFiles = 1_000_000
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

// PathsCheck reads paths that each end with a zero byte, and stops at the first one with trouble.
type PathsCheck struct {
	// Trouble says why the paths cannot be used, "" if nothing is wrong yet.
	Trouble string

	stop  func()
	check func(path string) string
	files int
	rest  []byte
}

// CheckPaths returns a check that calls stop when there is trouble. check says what is wrong with a
// path; it may see only the beginning of a long one.
func CheckPaths(stop func(), check func(path string) string) *PathsCheck {
	return &PathsCheck{stop: stop, check: check}
}

func (c *PathsCheck) Write(p []byte) (int, error) {
	if c.Trouble != "" {
		return len(p), nil
	}
	c.rest = append(c.rest, p...)
	for c.Trouble == "" && len(c.rest) > 0 {
		path, rest, whole := bytes.Cut(c.rest, []byte{0})
		c.Trouble = c.check(string(path))
		if !whole {
			break
		}
		c.rest = rest
		if c.files++; c.files > maxFiles && c.Trouble == "" {
			c.Trouble = fmt.Sprintf("it has more than %d files", maxFiles)
		}
	}
	if c.Trouble != "" {
		c.stop()
	}
	return len(p), nil
}
