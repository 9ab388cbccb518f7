package framework

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

func readFile(root *os.Root, path string) ([]byte, error) { return ReadFile(root, path, fileLimit) }

// ReadFile reads a file of a tree. It reads only a regular file of at most limit bytes, and does
// not wait for a pipe that a command has left there.
func ReadFile(root *os.Root, path string, limit int64) (data []byte, err error) {
	file, err := root.OpenFile(filepath.Clean(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		// The error of a read has the path of the tree, which tenants must not learn.
		return nil, syscall.EISDIR
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	}
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}

// positionOf returns the line and the column of a syntax error in the file.
func positionOf(data []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 1 || syntax.Offset > int64(len(data)) {
		return ""
	}
	before := data[:syntax.Offset-1]
	return fmt.Sprintf(" (line %d, column %d)", bytes.Count(before, []byte{'\n'})+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// within reports whether a path from the repository's root stays in the repository.
func within(path string) bool { return path == "." || filepath.IsLocal(path) }

// firstOf returns the first of the names that is a file in a directory of the tree.
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
