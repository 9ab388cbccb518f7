// Package archive unpacks the tarballs that clients have uploaded for a build. A tarball comes
// from a stranger: nothing in it may lead out of the directory that it is unpacked into,
// neither during the unpacking nor later, and a small tarball must not become a large tree.
package archive

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// Limits bound the content that a tarball may unpack to.
type Limits struct {
	// Bytes is the limit for the total size of all files. Entries is the limit for the number
	// of files, directories and links.
	Bytes   int64
	Entries int
}

// Default are the limits of a build.
var Default = Limits{Bytes: 2 << 30, Entries: 100_000}

// Missing is the failure of a build whose tarball was not uploaded.
var Missing = build.Fail(build.ReasonSourceNotFound,
	"nothing was uploaded to the source_tarball_path, or it is not kept any more. PUT the tarball to the upload_url first, or upload it again.")

// Unpack puts the files of a gzip tarball into an empty directory, and returns the digest of
// the tarball. If something is wrong with the tarball, the error is a build.Failure.
func Unpack(ctx context.Context, tarball io.Reader, tree *os.Root, limits Limits) (digest string, err error) {
	hash := sha256.New()
	raw := &source{ctx: ctx, tarball: io.TeeReader(tarball, hash)}
	u := unpacking{ctx: ctx, tree: tree, left: limits, limits: limits, links: map[string]bool{}}
	// The gzip reader reads no more than it needs from a reader that has ReadByte.
	buffered := bufio.NewReaderSize(raw, 1<<16)
	if err := u.all(buffered); err != nil {
		return "", cmp.Or(raw.err, err)
	}
	if _, err := io.Copy(io.Discard, buffered); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// source separates the errors of reading from the errors in the data that was read.
type source struct {
	ctx     context.Context
	tarball io.Reader
	err     error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err = context.Cause(s.ctx); s.err != nil {
		return 0, s.err
	}
	n, err := s.tarball.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

type unpacking struct {
	ctx          context.Context
	tree         *os.Root
	limits, left Limits
	// links are the symbolic links that were made, by their paths.
	links map[string]bool
}

func invalid(format string, args ...any) error {
	return build.Fail(build.ReasonSourceInvalid, "what was uploaded cannot be unpacked: "+format, args...)
}

func (u *unpacking) all(tarball io.Reader) error {
	unzipped, err := gzip.NewReader(tarball)
	if err != nil {
		return invalid("it is no gzip tarball (%v).", err)
	}
	entries := tar.NewReader(unzipped)
	for {
		// One read may have the entries of a whole tree.
		if err := context.Cause(u.ctx); err != nil {
			return err
		}
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return wholly(unzipped)
		}
		if err != nil {
			return invalid("it is no gzip tarball, or not a whole one (%v).", err)
		}
		if err := u.entry(header, entries); err != nil {
			return err
		}
	}
}

// maxPadding is how many bytes may follow the end of a tarball inside gzip; tar programs fill up
// their last block with zeros.
const maxPadding = 1 << 20

// wholly reads on to the end of the gzip stream, which verifies its checksum.
func wholly(unzipped io.Reader) error {
	read, err := io.Copy(io.Discard, io.LimitReader(unzipped, maxPadding+1))
	if err != nil {
		return invalid("it is no gzip tarball, or not a whole one (%v).", err)
	}
	if read > maxPadding {
		return invalid("more than %d bytes follow its end.", maxPadding)
	}
	return nil
}

func (u *unpacking) entry(header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	if header.Typeflag == tar.TypeXGlobalHeader || name == "." {
		return nil
	}
	if why := build.TroubleWithPath(name); why != "" {
		return invalid("%s.", why)
	}
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return invalid("%q is outside of it.", header.Name)
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if u.links[parent] {
			return invalid("%q is behind the link %q.", header.Name, parent)
		}
	}
	if err := u.count(); err != nil {
		return err
	}
	err := u.make(name, header, content)
	switch {
	case errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, syscall.ENOTDIR):
		return invalid("it has %q twice, or beside what it would be in.", header.Name)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return invalid("%q, or what it links to, is too long for this machine.", header.Name)
	}
	return err
}

// count counts a file, a directory or a link.
func (u *unpacking) count() error {
	if u.left.Entries--; u.left.Entries < 0 {
		return build.Fail(build.ReasonSourceTooLarge, "what was uploaded has more than the %d files and directories that it may.", u.limits.Entries)
	}
	return nil
}

// dirs makes a directory that no entry has named, and the directories above it.
func (u *unpacking) dirs(name string) error {
	if info, err := u.tree.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := errors.Join(u.dirs(path.Dir(name)), u.count()); err != nil {
		return err
	}
	return u.tree.Mkdir(name, 0o700)
}

func (u *unpacking) make(name string, header *tar.Header, content io.Reader) error {
	if err := u.dirs(path.Dir(name)); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		err := u.tree.Mkdir(name, 0o700)
		if info, _ := u.tree.Lstat(name); info != nil && info.IsDir() {
			return nil
		}
		return err
	case tar.TypeReg:
		return u.file(name, header, content)
	case tar.TypeSymlink:
		if header.Linkname == "" {
			return invalid("the link %q leads nowhere.", header.Name)
		}
		if !staysInside(name, header.Linkname) {
			return invalid("the link %q leads out of it.", header.Name)
		}
		u.links[name] = true
		return u.tree.Symlink(header.Linkname, name)
	default:
		return invalid("%q is neither a file, nor a directory, nor a symbolic link.", header.Name)
	}
}

func (u *unpacking) file(name string, header *tar.Header, content io.Reader) error {
	if u.left.Bytes -= header.Size; u.left.Bytes < 0 {
		return build.Fail(build.ReasonSourceTooLarge, "what was uploaded unpacks to more than the %d MB that it may.", u.limits.Bytes>>20)
	}
	file, err := u.tree.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, header.FileInfo().Mode().Perm()&0o755|0o600)
	if err != nil {
		return err
	}
	written := &sink{Writer: file}
	_, err = io.Copy(written, content)
	if closed := file.Close(); err == nil || written.err != nil {
		return errors.Join(err, closed)
	}
	return invalid("it is not a whole tarball (%v).", err)
}

// sink separates the errors of writing from the errors in the data that is written.
type sink struct {
	io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.err = err
	return n, err
}

// staysInside reports whether a link leads to a place in the tree, also when there are other links.
// No entry is behind a link, so the ".." steps at the beginning lead where they seem to lead. A
// later ".." could start from the place to which another link leads.
func staysInside(name, target string) bool {
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return false
	}
	down := false
	for step := range strings.SplitSeq(target, "/") {
		if step == ".." && down {
			return false
		}
		down = down || step != ".." && step != "." && step != ""
	}
	return true
}
