package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// toolNames are the programs of the machine that the platform's own steps run.
var toolNames = []string{"git", "node", "npm", "python3", "uv"}

// tools are the programs that platform steps run, as they were when the server started: a
// program that an agent may put into PATH later is not run.
type tools struct {
	// paths are the paths of the programs. refused are the paths of programs that are not run
	// because agents can write there. closed are the paths of programs that only root can run.
	// All are by name.
	paths, refused, closed map[string]string
	// path is the PATH of platform steps, without directories that agents may write to.
	path string
}

// usersTools are the tools that the users of workspaces run, too.
var usersTools = []string{"git", "node", "uv"}

// findTools looks the tools up in a PATH. If workspaces have users of their own, it looks for
// tools that these users can run.
func findTools(path, private string, users bool) tools {
	var writable []string
	if private != "" && child.Confines() {
		writable = append(child.Public(private), private)
	}
	t := tools{paths: map[string]string{}, refused: map[string]string{}, closed: map[string]string{}}
	var safe []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if !reachedThrough(dir, writable) {
			safe = append(safe, dir)
		}
		for _, name := range toolNames {
			t.consider(name, filepath.Join(dir, name), writable, users)
		}
	}
	t.path = strings.Join(safe, string(filepath.ListSeparator))
	return t
}

// consider takes a program for a tool if no program was found for the tool so far.
func (t *tools) consider(name, candidate string, writable []string, users bool) {
	info, err := os.Stat(candidate)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || t.paths[name] != "" || t.refused[name] != "" {
		return
	}
	switch {
	case reachedThrough(candidate, writable):
		t.refused[name] = candidate
	case users && slices.Contains(usersTools, name) && !child.Reaches(candidate):
		t.closed[name] = candidate
	default:
		t.paths[name] = candidate
	}
}

// reachedThrough reports whether a path, or a link on the way to its target, lies in one of
// the directories.
func reachedThrough(path string, dirs []string) bool {
	for range 40 { // as many links as the kernel follows
		parent, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return true
		}
		path = filepath.Join(parent, filepath.Base(path))
		for _, dir := range dirs {
			if resolved, err := filepath.EvalSymlinks(dir); err == nil {
				dir = resolved
			}
			if inside, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(inside) {
				return true
			}
		}
		target, err := os.Readlink(path)
		if err != nil {
			return false
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(parent, target)
		}
		path = target
	}
	return true
}

// find returns the path of a tool, "" if the machine does not have the tool.
func (t tools) find(name string) (string, error) {
	if at := t.refused[name]; at != "" {
		return "", build.Fail(build.ReasonRuntimeMissing,
			"%s is not run, because it is at %s, where agents can write. Its operator can install it elsewhere, take the directory out of the server's PATH, and start the server again.", name, at)
	}
	if at := t.closed[name]; at != "" && t.paths[name] == "" {
		return "", build.Fail(build.ReasonRuntimeMissing,
			"%s is not run, because it is at %s, where only root may enter. Its operator can install it for everybody, and start the server again.", name, at)
	}
	return t.paths[name], nil
}

// need is find for a tool without which a build cannot go on. why begins the failure's message.
func (t tools) need(name, why string) (string, error) {
	path, err := t.find(name)
	if err == nil && path == "" {
		return "", build.Fail(build.ReasonRuntimeMissing, "%sthis machine has no %s.", why, name)
	}
	return path, err
}

// makeShared makes the directories that platform steps write to.
func (b *Builder) makeShared() error {
	tools := filepath.Join(b.cfg.Dir, "tools")
	return errors.Join(makeReadable(b.shared()...), makeDirs(filepath.Join(tools, "home"), filepath.Join(tools, "tmp")))
}

// Closed returns the files that variables of this server's environment name to commands of
// tenants, for example certificates, and that the users of workspaces cannot read.
func Closed() []string {
	return slices.DeleteFunc(filesOf(network), child.Reaches)
}

// Withheld returns the names of the variables of this server's environment that commands of
// tenants get without the credentials in them.
func Withheld() []string {
	var names []string
	for _, variable := range passOn(network) {
		if build.WithoutCredentials(variable) != variable {
			name, _, _ := strings.Cut(variable, "=")
			names = append(names, name)
		}
	}
	return names
}
