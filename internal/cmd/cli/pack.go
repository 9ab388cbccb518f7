package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxTarball is the largest upload, in bytes, that a server accepts.
const maxTarball = 200 << 20

// left are files and directories that are never uploaded: the secrets of a machine, the
// history, files that tools can make again, and the data of a server.
var left = []string{".env", ".git", ".slipway", "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}

// tarball is a directory, packed into a temporary file. The same files make the same tarball.
type tarball struct {
	file   *os.File
	size   int64
	files  int
	digest string
}

func (t *tarball) remove() error {
	return errors.Join(t.file.Close(), os.Remove(t.file.Name()))
}

// pack packs the files of a directory.
func pack(ctx context.Context, dir string) (packed *tarball, err error) {
	names, err := list(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	file, err := os.CreateTemp("", "slipway-*.tar.gz")
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	result := &tarball{file: file, files: len(names)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("pack %s: %w", dir, err), result.remove())
		}
	}()
	hash := sha256.New()
	zipped, err := gzip.NewWriterLevel(io.MultiWriter(file, hash), gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	entries := tar.NewWriter(zipped)
	for _, name := range names {
		if err := add(entries, dir, name); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(entries.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	if result.size, err = file.Seek(0, io.SeekCurrent); err != nil {
		return nil, err
	}
	if result.size > maxTarball {
		return nil, fmt.Errorf("it takes %s, and a server takes %s: name files that are not needed in .gitignore", size(result.size), size(maxTarball))
	}
	result.digest = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}

// add adds a file without its time and owner, because these do not matter for the deployment.
func add(entries *tar.Writer, dir, name string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	header := &tar.Header{Format: tar.FormatPAX, Name: name, Mode: 0o644}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		header.Typeflag, header.Linkname = tar.TypeSymlink, filepath.ToSlash(target)
		return entries.WriteHeader(header)
	}
	if info.Mode().Perm()&0o100 != 0 {
		header.Mode = 0o755
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := entries.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(entries, file)
	return err
}

// list names the files of a directory, in order: the files that git does not ignore, whether
// or not the directory is a repository.
func list(ctx context.Context, dir string) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("it is no directory")
	}
	names, ok := listGit(ctx, dir)
	if !ok {
		if names, err = walk(dir); err == nil {
			names, err = unignored(ctx, dir, names)
		}
		if err != nil {
			return nil, err
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return isLeft(name) || !isFile(filepath.Join(dir, name)) })
	slices.Sort(names)
	return slices.Compact(names), nil
}

// listGit asks git, if git is installed and knows the directory.
func listGit(ctx context.Context, dir string) ([]string, bool) {
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	listed, err := cmd.Output()
	if err != nil {
		return nil, false
	}
	names := strings.Split(string(bytes.TrimSuffix(listed, []byte{0})), "\x00")
	return names, names[0] != ""
}

// unignored leaves out the names that .gitignore files ignore, in a directory that is not a
// repository. Git reads them, in an empty repository elsewhere.
func unignored(ctx context.Context, dir string, names []string) (kept []string, err error) {
	if !slices.ContainsFunc(names, func(name string) bool { return path.Base(name) == ".gitignore" }) {
		return names, nil
	}
	repository, err := os.MkdirTemp("", "slipway-git-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(repository)) }()
	if err := exec.CommandContext(ctx, "git", "init", "--quiet", "--bare", repository).Run(); err != nil {
		return nil, fmt.Errorf("git is needed to read .gitignore: %w", err)
	}
	cmd := exec.CommandContext(ctx, "git", "--git-dir", repository, "--work-tree", ".", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(strings.Join(names, "\x00"))
	listed, err := cmd.Output()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() == noneIgnored {
		return names, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read .gitignore: %w", err)
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(string(listed), "\x00") {
		ignored[name] = true
	}
	return slices.DeleteFunc(names, func(name string) bool { return ignored[name] }), nil
}

// noneIgnored is the exit code of git check-ignore when no file is ignored.
const noneIgnored = 1

func walk(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && isLeft(name) {
			return filepath.SkipDir
		}
		if !entry.IsDir() {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	return names, err
}

// isLeft reports whether a file, or a directory above it, is never uploaded.
func isLeft(name string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		if slices.Contains(left, part) {
			return true
		}
	}
	return false
}

// isFile reports whether there is a file or a link that can be packed; git also lists files
// that were deleted.
func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0)
}

// size formats a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	default:
		return fmt.Sprintf("%d bytes", bytes)
	}
}
