package framework

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestPython is the oldest minor release of Python 3 that the runtime works with, and
// newestPython is the newest that could exist for long.
const oldestPython, newestPython = 11, 40

var (
	// versionFile matches a .python-version that names a release of Python.
	versionFile = regexp.MustCompile(`^\s*(\d+\.\d+)(?:\.\d+)?\s*$`)
	// specifier matches a specifier of PEP 440 for released versions, or Poetry's form of it.
	specifier = regexp.MustCompile(`^\s*(~=|==|!=|<=?|>=?|\^|~)\s*(\d+(?:\.\d+)*)(\.\*)?\s*$`)
)

// Interpreter returns the Python that the repository asks for, as uv reads it: a minor release, or
// the specifiers of all releases that the runtime and the repository's packages work with.
func (c Config) Interpreter(root *os.Root, e Environment) string {
	if version := cmp.Or(c.Version, fileVersion(root, c.Dir)); version != "" {
		return version
	}
	specifiers := []string{fmt.Sprintf(">=3.%d", oldestPython)}
	for _, dir := range e.Path {
		if text, err := readFile(root, filepath.Join(dir, "pyproject.toml")); err == nil {
			specifiers = append(specifiers, readPyproject(text).pythons()...)
		}
	}
	return strings.Join(specifiers, ",")
}

// fileVersion returns the minor release that the nearest .python-version at or above a directory
// asks for, "" if it asks for none that the runtime works with. The file often names the release
// that its author happens to have; any release of the minor version will do.
func fileVersion(root *os.Root, dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if text, err := readFile(root, filepath.Join(dir, ".python-version")); err == nil {
			if version := versionFile.FindSubmatch(text); version != nil && pythonVersion.Match(version[1]) {
				return string(version[1])
			}
			return ""
		}
		if dir == "." || dir == "" {
			return ""
		}
	}
}

// pythons returns the specifiers of the releases that the package works with, nil if they cannot
// be read: uv has the better message about them.
func (p pyproject) pythons() (specifiers []string) {
	poetry, _ := p.Tool.Poetry["dependencies"].(map[string]any)
	wanted, _ := poetry["python"].(string)
	wanted = cmp.Or(p.Project.RequiresPython, wanted)
	for part := range strings.SplitSeq(wanted, ",") {
		match := specifier.FindStringSubmatch(part)
		if match == nil {
			return nil
		}
		specifiers = append(specifiers, standard(match[1], match[2], match[3])...)
	}
	return specifiers
}

// standard returns the specifiers of PEP 440 for one of Poetry's, which are more.
func standard(operator, version, wildcard string) []string {
	parts := strings.Split(version, ".")
	switch operator {
	case "^":
		return []string{">=" + version, fmt.Sprintf("<%d", Major(version)+1)}
	case "~":
		return []string{">=" + version, "==" + strings.Join(parts[:min(len(parts), 2)], ".") + ".*"}
	}
	return []string{operator + version + wildcard}
}

// NearestPython returns the minor release of Python nearest to a preferred one that what
// Interpreter returned admits: the older of two. Without such a release it is the preferred one.
func NearestPython(wanted, preferred string) string {
	if pythonVersion.MatchString(wanted) {
		return wanted
	}
	minor, err := strconv.Atoi(strings.TrimPrefix(preferred, "3."))
	if err != nil {
		return preferred
	}
	for away := range newestPython {
		for _, candidate := range []int{minor - away, minor + away} {
			if candidate >= oldestPython && admits(wanted, candidate) {
				return fmt.Sprintf("3.%d", candidate)
			}
		}
	}
	return preferred
}

// admits reports whether specifiers admit the last releases of a minor release.
func admits(specifiers string, minor int) bool {
	for part := range strings.SplitSeq(specifiers, ",") {
		match := specifier.FindStringSubmatch(part)
		if match == nil || !admitted(match[1], numbersOf(match[2]), match[3] != "", []int{3, minor, 99}) {
			return false
		}
	}
	return true
}

// admitted reports whether a specifier of PEP 440 admits a version.
func admitted(operator string, than []int, wildcard bool, version []int) bool {
	same := slices.Equal(version[:min(len(than), len(version))], than)
	order := slices.Compare(version, than)
	switch operator {
	case ">=":
		return order >= 0
	case ">":
		return order > 0 && !same
	case "<=":
		return order <= 0
	case "<":
		return order < 0
	case "~=":
		return order >= 0 && slices.Equal(version[:min(len(than)-1, len(version))], than[:len(than)-1])
	case "==":
		return same && wildcard
	}
	return !same || !wildcard // !=
}

// numbersOf returns the numbers of a version.
func numbersOf(version string) (numbers []int) {
	for part := range strings.SplitSeq(version, ".") {
		number, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		numbers = append(numbers, number)
	}
	return numbers
}
