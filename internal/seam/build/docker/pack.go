package docker

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
)

// pack writes the context of a build as an archive. No link is followed.
func pack(to io.Writer, recipe dockerfile.Recipe, tree *os.Root) error {
	archive := tar.NewWriter(to)
	files := maps.Clone(recipe.Files)
	files["Dockerfile"] = recipe.Dockerfile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			return err
		}
		if _, err := io.WriteString(archive, files[name]); err != nil {
			return err
		}
	}
	return errors.Join(packTree(archive, tree), archive.Close())
}

// packTree adds the tree, except the files of git.
func packTree(archive *tar.Writer, root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git" && entry.IsDir():
			return fs.SkipDir
		case entry.Name() == ".git":
			return nil
		}
		return packEntry(archive, root, name, entry)
	})
}

func packEntry(archive *tar.Writer, root *os.Root, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: path.Join(dockerfile.Tree, name), Mode: int64(info.Mode().Perm())}
	switch {
	case info.IsDir():
		header.Typeflag = tar.TypeDir
		return archive.WriteHeader(header)
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = root.Readlink(filepath.FromSlash(name)); err != nil {
			return err
		}
		return archive.WriteHeader(header)
	case !info.Mode().IsRegular():
		return nil // a build command may have left a socket
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return errors.Join(err, file.Close())
	}
	_, err = io.Copy(archive, file)
	return errors.Join(err, file.Close())
}
