package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/infra/runtimes"
)

// runtime is a program of the platform that hosts the graphs of a repository.
type runtime string

const (
	python runtime = "python"
	node   runtime = "node"
)

// suffixes are those of files that a runtime can load.
var suffixes = map[string]runtime{
	".py": python,
	".js": node, ".mjs": node, ".cjs": node, ".jsx": node, ".ts": node, ".mts": node, ".cts": node, ".tsx": node,
}

// wantedRuntime says which runtime a repository without a start command relies on: the one of all its graphs' files.
func (p *parser) wantedRuntime() {
	found := map[runtime]bool{}
	for _, file := range p.config.files {
		// A Python module may be named by its dotted name, too.
		kind, known := suffixes[filepath.Ext(file)]
		if !known && p.has("dependencies") && !strings.Contains(file, "/") {
			kind, known = python, true
		}
		if !known {
			p.problem("start: is missing; it must be the command that starts the agent, as the file %q is neither Python nor JavaScript", file)
			return
		}
		found[kind] = true
	}
	switch {
	case len(found) > 1:
		p.problem("graphs: must be all Python or all JavaScript; one agent has one runtime")
	case found[python]:
		p.config.runtime = python
		p.config.version = p.versionOf("python_version", checkPythonVersion)
		p.pythonDependencies()
	case found[node]:
		p.config.runtime = node
		p.config.version = p.versionOf("node_version", checkNodeVersion)
	}
}

// versionOf reads the version of a language, which may be a number in JSON.
func (p *parser) versionOf(field string, check func(string) error) string {
	if !p.has(field) {
		return ""
	}
	var version string
	if json.Unmarshal(p.fields[field], &version) != nil {
		var number json.Number
		if json.Unmarshal(p.fields[field], &number) != nil {
			p.problem("%s: must be a string", field)
			return ""
		}
		version = number.String()
	}
	if err := check(version); err != nil {
		p.problem("%s: %v", field, err)
	}
	return version
}

// runtimeDir returns where the runtime's files are, after writing them there if this server has not yet. A directory holds one version of them, so
// that agents that were built with another keep theirs.
func (b *Builder) runtimeDir(kind runtime) (string, error) {
	files, err := fs.Sub(runtimes.Files, string(kind))
	if err != nil {
		return "", fmt.Errorf("find the %s runtime: %w", kind, err)
	}
	sum, err := hashFiles(files)
	if err != nil {
		return "", fmt.Errorf("read the %s runtime: %w", kind, err)
	}
	dir := filepath.Join(b.cfg.Dir, "runtimes", string(kind)+"-"+sum[:16])
	return dir, b.publish(dir, func(temp string) error { return os.CopyFS(temp, files) })
}

// publish makes a directory by filling a temporary one, unless it is there: others see it whole or not at all. Two that publish at a time both succeed.
func (b *Builder) publish(dir string, fill func(temp string) error) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	if err := fill(temp); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	err = os.Rename(temp, dir)
	if err == nil {
		return nil
	}
	if _, there := os.Stat(dir); there == nil {
		err = nil // another was faster
	}
	return errors.Join(err, os.RemoveAll(temp))
}

// hashFiles is a digest over names and contents.
func hashFiles(files fs.FS) (string, error) {
	digest := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		addTo(digest, path, text)
		return nil
	})
	return hex.EncodeToString(digest.Sum(nil)), err
}

// addTo adds a named text to a digest, so that no other sequence of names and texts gives the same.
func addTo(digest io.Writer, name string, text []byte) {
	fmt.Fprintf(digest, "%q %d\n", name, len(text))
	digest.Write(text) //nolint:errcheck // a hash's Write never fails
}

// within reports whether a path from the repository's root stays in the repository.
func within(path string) bool { return path == "." || filepath.IsLocal(path) }

// firstOf returns the first of the names that a directory of the tree has.
func firstOf(root *os.Root, dir string, names ...string) (string, bool) {
	i := slices.IndexFunc(names, func(name string) bool {
		info, err := root.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	})
	if i < 0 {
		return "", false
	}
	return names[i], true
}
