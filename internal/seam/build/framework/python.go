package framework

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// UVVersion is the version of uv that is used if there is no uv yet. uv resolves and installs
// packages.
const UVVersion = "0.13.8"

// RuntimeConflict is the message about dependencies whose resolution fails together with the
// dependencies of the runtime and succeeds without them. If the resolution fails without them,
// too, it is the repository's own fault, and the message does not mention the runtime.
const RuntimeConflict = "the dependencies go together, but not with what Slipway's runtime needs"

// pythonDependencies reads a list of requirements and of directories of the repository.
// Without a list, the only dependency is the directory of the file.
func (p *parser) pythonDependencies() {
	if !p.has("dependencies") {
		p.config.Dependencies = []string{"."}
		p.lockThatIsNotAskedFor(p.config.Dir)
		return
	}
	if err := json.Unmarshal(p.fields["dependencies"], &p.config.Dependencies); err != nil {
		p.problem(`dependencies: must be a list of requirements and directories, as [".", "requests>=2"]`)
		return
	}
	for i, dependency := range p.config.Dependencies {
		dir := filepath.Join(p.config.Dir, dependency)
		switch {
		case strings.ContainsAny(dependency, "\n\r\x00") || strings.TrimSpace(dependency) == "" || strings.HasPrefix(dependency, "-"):
			p.problem("dependencies[%d]: must be a requirement or a directory", i)
		case isDirectory(dependency) && !within(dir):
			p.problem("dependencies[%d]: the directory %q leaves the repository", i, dependency)
		case slices.Contains(manifests, filepath.Base(dependency)) && p.isFile(dir):
			p.problem("dependencies[%d]: %q is a file: name the directory that it is in", i, dependency)
		case isDirectory(dependency):
			p.lockThatIsNotAskedFor(dir)
			p.directoryWithoutPackages(dir)
		}
	}
}

// manifests are the files that name the packages of a directory. The first of them counts.
var manifests = []string{"pyproject.toml", "setup.py", "requirements.txt"}

// isFile reports whether the repository has such a file.
func (p *parser) isFile(name string) bool {
	info, err := p.root.Stat(name)
	return err == nil && !info.IsDir()
}

// directoryWithoutPackages adds a remark for authors whose packages are named elsewhere, such as in
// the pyproject.toml of the directory above.
func (p *parser) directoryWithoutPackages(dir string) {
	info, err := p.root.Stat(dir)
	if _, ok := firstOf(p.root, dir, manifests...); err == nil && info.IsDir() && !ok {
		p.remark("dependencies", fmt.Sprintf("nothing is installed for the directory %q: it has no %s", dir, strings.Join(manifests, ", ")))
	}
}

// lockThatIsNotAskedFor adds a remark for authors who expect that a lock file is used.
func (p *parser) lockThatIsNotAskedFor(dir string) {
	if lock, ok := firstOf(p.root, dir, "uv.lock"); ok {
		p.config.Remarks = append(p.config.Remarks, filepath.Join(dir, lock)+` is not used: dependencies are resolved again, as the configuration file has no "source": {"kind": "uv"}`)
	}
}

// isDirectory reports whether a dependency is one of the repository's own directories and not
// a requirement. Directories begin with a dot.
func isDirectory(dependency string) bool { return strings.HasPrefix(dependency, ".") }

// Environment describes the Python environment of a repository. Its paths are relative to the
// repository's root.
type Environment struct {
	// Requirements are the lines of the configuration file itself.
	Requirements string
	// Inputs are files for the resolver, in order. Packages are directories that are installed
	// as they are. Path are the directories in which Python finds modules; the runtime finds a
	// directory that is a package itself by its name.
	Inputs, Packages, Path []string
	// Locked is the project whose uv.lock pins the versions, nil if no version is pinned.
	Locked *Locked
	// Dir is the directory where the commands run.
	Dir string
	// Pip are variables for the commands that resolve and install packages.
	Pip []string
}

// Environment returns the environment for the dependencies of a Python repository.
func (c Config) Environment(root *os.Root) (Environment, error) {
	e := Environment{Dir: c.Dir, Pip: c.Pip}
	for _, tool := range c.Tools {
		e.Requirements += tool + "\n"
	}
	if c.Source != nil {
		err := c.Source.fill(root, &e)
		return e, err
	}
	for _, dependency := range c.Dependencies {
		if !isDirectory(dependency) {
			e.Requirements += dependency + "\n"
			continue
		}
		dir := filepath.Join(c.Dir, dependency)
		if info, err := root.Stat(dir); err != nil || !info.IsDir() {
			return e, build.Fail(build.ReasonConfigInvalid, "dependencies: the repository has no directory %q.", dir)
		}
		e.Path = append(e.Path, dir)
		if file, ok := firstOf(root, dir, manifests...); ok {
			e.Inputs = append(e.Inputs, filepath.Join(dir, file))
			if file != "requirements.txt" {
				e.Packages = append(e.Packages, dir)
			}
		}
	}
	return e, nil
}

var (
	// ownLine matches a requirement that may name another file or directory of the repository.
	ownLine = regexp.MustCompile(`(?m)^\s*(-|\.|/)|file:|\\$|@\s*[./]`)
	// ownLock matches the parts of uv.lock that name another directory of the repository.
	ownLock = regexp.MustCompile(`members = \[|(editable|directory|path|virtual) = "([^".]|\.[^"])`)
)

// Manifests returns the files that determine the resolution of the environment. It returns nil
// if other files may matter, too: for example, if a package's own code makes its metadata.
func (e Environment) Manifests(root *os.Root) ([]string, error) {
	if e.hasSettings(root) || len(e.Pip) > 0 || ownLine.MatchString(e.Requirements) {
		return nil, nil
	}
	files := append([]string{}, e.Inputs...)
	if e.Locked != nil {
		files = append(files, filepath.Join(e.Locked.Dir, "pyproject.toml"), e.Locked.File())
	}
	for _, file := range files {
		text, err := readFile(root, file)
		if err != nil {
			return nil, build.Fail(build.ReasonConfigInvalid, "%s cannot be read: %v.", file, err)
		}
		alone := false
		switch filepath.Base(file) {
		case "requirements.txt":
			alone = !ownLine.Match(text)
		case "pyproject.toml":
			alone = readPyproject(text).alone()
		case "uv.lock":
			alone = !ownLock.Match(text)
		}
		if !alone {
			return nil, nil
		}
	}
	return files, nil
}

// Distributions returns the normal names of the packages in Packages. known reports whether
// all packages have their name in their pyproject.toml.
func (e Environment) Distributions(root *os.Root) (names []string, known bool) {
	for _, dir := range e.Packages {
		text, err := readFile(root, filepath.Join(dir, "pyproject.toml"))
		if err != nil {
			return nil, false
		}
		name := readPyproject(text).Project.Name
		if name == "" {
			return nil, false
		}
		names = append(names, NormalName(name))
	}
	return names, true
}

var nameParts = regexp.MustCompile(`[-_.]+`)

// NormalName returns the form of a distribution's name that is used for comparing.
func NormalName(name string) string { return strings.ToLower(nameParts.ReplaceAllString(name, "-")) }

// hasSettings reports whether there are settings of uv in the directory where the commands
// run, or above it.
func (e Environment) hasSettings(root *os.Root) bool {
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		if _, ok := firstOf(root, dir, "uv.toml"); ok {
			return true
		}
		if text, err := readFile(root, filepath.Join(dir, "pyproject.toml")); err == nil && readPyproject(text).hasSettings() {
			return true
		}
		if dir == "." {
			return false
		}
	}
}
