package framework

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

// configNames are the names of a configuration file, in the order in which they are tried.
var configNames = []string{DefaultPath, publicname.ConfigurationFile()}

const (
	// mostNamed is how many files a message names at most. mostLooked is how many files and
	// directories a search looks at.
	mostNamed, mostLooked = 8, 5000
)

// whatThereIs names the configuration files that a repository has elsewhere, or else the files
// that it has where the configuration file was expected.
func whatThereIs(root *os.Root, path string) string {
	if files := configFiles(root); len(files) > 0 {
		return "; it has " + quoted(files) + ": name the file in framework_config_path"
	}
	for dir := filepath.Dir(filepath.Clean(path)); filepath.IsLocal(dir); dir = filepath.Dir(dir) {
		entries, err := fs.ReadDir(root.FS(), dir)
		if err == nil {
			return "; " + listing(dir, entries)
		}
		if dir == "." {
			break
		}
	}
	return ""
}

// listing names the entries of a directory.
func listing(dir string, entries []fs.DirEntry) string {
	place := "its root"
	if dir != "." {
		place = fmt.Sprintf("its directory %q", dir)
	}
	var names []string
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/"
		}
		if name != ".git/" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return place + " is empty"
	}
	return place + " has " + quoted(names)
}

// configFiles are the files of the tree with the name of a configuration file.
func configFiles(root *os.Root) []string {
	var files []string
	looked := 0
	// An unreadable directory hides its own entries, and nothing else.
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if looked++; looked > mostLooked {
			return fs.SkipAll
		}
		switch {
		case err != nil && entry != nil && entry.IsDir():
			return fs.SkipDir
		case err != nil:
			return nil //nolint:nilerr // what cannot be read is not named
		case entry.IsDir() && path != "." && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.Type().IsRegular() && slices.Contains(configNames, entry.Name()):
			files = append(files, path)
		}
		return nil
	})
	return files
}

// quoted lists names. If there are many names, it lists the first and the number of the
// others.
func quoted(names []string) string {
	more := ""
	if len(names) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(names)-mostNamed)
		names = names[:mostNamed]
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(words, ", ") + more
}
