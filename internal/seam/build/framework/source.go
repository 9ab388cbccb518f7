package framework

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// Source is a uv project whose uv.lock determines the installed packages. A lock file has no
// effect if the configuration does not ask for it: then the dependencies are resolved again, as
// the public builder does.
type Source struct {
	// Root is the directory of pyproject.toml and uv.lock, relative to the repository's root.
	// Package is the member of the workspace there that is the agent, "" for the nearest
	// member.
	Root, Package string
}

// Locked is a package of a uv project.
type Locked struct {
	// Dir is the directory of uv.lock, Package the name of the package, "" for the only
	// package.
	Dir, Package string
}

// File returns the path of the lock file.
func (l Locked) File() string { return filepath.Join(l.Dir, "uv.lock") }

// Export returns the arguments with which uv, started in Dir, writes the locked versions to a
// file. The file contains other members of the workspace, too.
func (l Locked) Export(file string) []string {
	args := []string{"export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "-o", file}
	if l.Package != "" {
		args = append(args, "--package", l.Package)
	}
	return args
}

// source reads {"kind": "uv", "root": "..", "package": "agent"}.
func (p *parser) source() {
	var fields struct {
		Kind, Package string
		Root          *string
	}
	if err := json.Unmarshal(p.fields["source"], &fields); err != nil {
		p.problem(`source: must be an object, as {"kind": "uv", "root": "."}`)
		return
	}
	source := &Source{Root: p.config.Dir, Package: fields.Package}
	if fields.Root != nil {
		source.Root = filepath.Join(p.config.Dir, *fields.Root)
	}
	switch {
	case fields.Kind != "uv":
		p.problem(`source.kind: must be "uv"`)
	case fields.Root != nil && *fields.Root == "":
		p.problem(`source.root: must not be empty; "." is the directory of this file`)
	case !within(source.Root):
		p.problem("source.root: the directory %q leaves the repository", *fields.Root)
	case p.has("dependencies") && string(p.fields["dependencies"]) != "[]":
		p.problem(`dependencies: must be absent beside source.kind "uv", with which all dependencies are those of uv.lock`)
	}
	p.config.Source = source
}

// fill completes the environment of the package in the lock file. So far, the directory of the
// environment is that of the configuration file.
func (s Source) fill(root *os.Root, e *Environment) error {
	for _, name := range []string{"pyproject.toml", "uv.lock"} {
		if _, ok := firstOf(root, s.Root, name); !ok {
			return build.Fail(build.ReasonConfigInvalid, "source: the repository has no %q, which source.kind \"uv\" needs.", filepath.Join(s.Root, name))
		}
	}
	dir, project, err := s.target(root, e.Dir)
	if err != nil {
		return err
	}
	e.Dir, e.Path, e.Locked = s.Root, []string{dir}, &Locked{Dir: s.Root, Package: project.Project.Name}
	if project.Tool.UV["package"] != false {
		e.Packages = []string{dir}
	}
	return nil
}

// target returns the package of the project that is the agent: the package that the
// configuration names, or else the package that contains the configuration file's directory.
func (s Source) target(root *os.Root, from string) (dir string, project pyproject, err error) {
	if s.Package == "" {
		for dir = from; dir != s.Root && dir != "."; dir = filepath.Dir(dir) {
			if project, err = projectOf(root, dir); err != nil || project.Project.Name != "" {
				return dir, project, err
			}
		}
		project, err = projectOf(root, s.Root)
		return s.Root, project, err
	}
	dirs, err := s.members(root)
	if err != nil {
		return "", project, err
	}
	var names []string
	for _, dir := range dirs {
		project, err := projectOf(root, dir)
		if err != nil || NormalName(project.Project.Name) == NormalName(s.Package) {
			return dir, project, err
		}
		if project.Project.Name != "" {
			names = append(names, project.Project.Name)
		}
	}
	return "", project, build.Fail(build.ReasonConfigInvalid, "source.package: the project in %q has no package %q; it has %q.", s.Root, s.Package, names)
}

// members returns the directories of the packages of the workspace.
func (s Source) members(root *os.Root) ([]string, error) {
	file := filepath.Join(s.Root, "pyproject.toml")
	text, err := readFile(root, file)
	if err != nil {
		return nil, build.Fail(build.ReasonConfigInvalid, "%s cannot be read: %v.", file, err)
	}
	var manifest struct {
		Tool struct {
			UV struct{ Workspace struct{ Members []string } }
		}
	}
	if err := toml.Unmarshal(text, &manifest); err != nil {
		return nil, build.Fail(build.ReasonConfigInvalid, "%s: %v.", file, err)
	}
	dirs := []string{s.Root}
	for _, pattern := range manifest.Tool.UV.Workspace.Members {
		matches, err := fs.Glob(root.FS(), filepath.Join(s.Root, pattern))
		if err != nil {
			return nil, build.Fail(build.ReasonConfigInvalid, "%s: %q is not a pattern of directories.", file, pattern)
		}
		dirs = append(dirs, matches...)
	}
	slices.Sort(dirs[1:])
	return slices.Compact(dirs), nil
}

// projectOf reads the pyproject.toml of a directory. The file may be absent.
func projectOf(root *os.Root, dir string) (pyproject, error) {
	file := filepath.Join(cmp.Or(dir, "."), "pyproject.toml")
	text, err := readFile(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return pyproject{}, nil
	}
	if err != nil {
		return pyproject{}, build.Fail(build.ReasonConfigInvalid, "%s cannot be read: %v.", file, err)
	}
	return readPyproject(text), nil
}
