package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/archive"
	"github.com/slipway-run/slipway/internal/test/check"
)

func file(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), PAXRecords: map[string]string{"SLIPWAY.content": content}}
}

func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

// pack makes a tarball.
func pack(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for _, header := range entries {
		content := header.PAXRecords["SLIPWAY.content"]
		if header.Typeflag != tar.TypeXGlobalHeader {
			header.PAXRecords = nil
		}
		check.Must(t, w.WriteHeader(&header))
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	check.Must(t, errors.Join(w.Close(), zipped.Close()))
	return packed.Bytes()
}

// unpack unpacks into a directory with nothing else around it.
func unpack(t *testing.T, tarball io.Reader, limits archive.Limits) (dir, digest string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "tree")
	check.Must(t, os.Mkdir(dir, 0o700))
	tree, err := os.OpenRoot(dir)
	check.Must(t, err)
	defer tree.Close()
	digest, err = archive.Unpack(t.Context(), tarball, tree, limits)
	return dir, digest, err
}

func TestATarballIsUnpacked(t *testing.T) {
	t.Parallel()
	packed := pack(t,
		tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "made by git"}},
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, tar.Header{Typeflag: tar.TypeDir, Name: "./a/b", Mode: 0},
		file("./a/b/c", "deep"), file("run.sh", "#!/bin/sh"), file("without/its/directory", "x"),
		link("a/up", "../run.sh"), link("a/here", "."), link("down", "a/b"), link("dangling", "nowhere"),
	)
	dir, digest, err := unpack(t, bytes.NewReader(packed), archive.Default)
	check.Must(t, err)
	if want := sha256.Sum256(packed); digest != hex.EncodeToString(want[:]) {
		t.Errorf("the digest is %s, want %x", digest, want)
	}
	found := map[string]string{}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			found[name], err = os.Readlink(filepath.Join(dir, name))
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		found[name] = string(text)
		return err
	})
	check.Must(t, err)
	want := map[string]string{
		"a/b/c": "deep", "run.sh": "#!/bin/sh", "without/its/directory": "x", "a/up": "../run.sh", "a/here": ".", "down": "a/b", "dangling": "nowhere",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestProgramsStayPrograms(t *testing.T) {
	t.Parallel()
	program := file("run", "x")
	program.Mode = 0o6777
	dir, _, err := unpack(t, bytes.NewReader(pack(t, program)), archive.Default)
	check.Must(t, err)
	if info, err := os.Stat(filepath.Join(dir, "run")); err != nil || info.Mode() != 0o755&^umask(t)|0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

// umask returns the permissions that new files lack.
func umask(t *testing.T) fs.FileMode {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o777)
	check.Must(t, err)
	defer f.Close()
	info, err := f.Stat()
	check.Must(t, err)
	return 0o777 &^ info.Mode()
}

// TestAttackHostileTarballs unpacks each tarball with a file beside the tree. The file must
// not change.
func TestAttackHostileTarballs(t *testing.T) {
	t.Parallel()
	whole := pack(t, file("a", strings.Repeat(rand.Text(), 1000)))
	plain := new(bytes.Buffer)
	check.Must(t, tar.NewWriter(plain).Close())
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0xff
	for name, c := range map[string]struct {
		tarball []byte
		reason  string
		words   string
	}{
		"a file above":               {pack(t, file("../beside", "x")), build.ReasonSourceInvalid, `"../beside" is outside`},
		"a file above, later":        {pack(t, file("a/../../beside", "x")), build.ReasonSourceInvalid, "is outside"},
		"an absolute path":           {pack(t, file("/etc/beside", "x")), build.ReasonSourceInvalid, "is outside"},
		"a link above":               {pack(t, link("out", "../beside")), build.ReasonSourceInvalid, `the link "out" leads out`},
		"an absolute link":           {pack(t, link("out", "/etc/passwd")), build.ReasonSourceInvalid, "leads out"},
		"a link above, from below":   {pack(t, link("a/out", "../../beside")), build.ReasonSourceInvalid, "leads out"},
		"a link through a link":      {pack(t, link("here", "."), link("out", "here/../beside")), build.ReasonSourceInvalid, "leads out"},
		"a file through a link":      {pack(t, link("here", "."), file("here/x", "x")), build.ReasonSourceInvalid, `"here/x" is behind the link "here"`},
		"a link behind links":        {pack(t, link("l", "."), link("l/l/l/out", "../../../beside")), build.ReasonSourceInvalid, "is behind the link"},
		"a directory through a link": {pack(t, link("here", "."), tar.Header{Typeflag: tar.TypeDir, Name: "here/d"}), build.ReasonSourceInvalid, "is behind the link"},
		"a hard link":                {pack(t, file("a", "x"), tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}), build.ReasonSourceInvalid, `"b" is neither`},
		"a device":                   {pack(t, tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}), build.ReasonSourceInvalid, "is neither"},
		"a pipe":                     {pack(t, tar.Header{Typeflag: tar.TypeFifo, Name: "pipe"}), build.ReasonSourceInvalid, "is neither"},
		"a file twice":               {pack(t, file("a", "1"), file("a", "2")), build.ReasonSourceInvalid, `it has "a" twice`},
		"a file over a link":         {pack(t, link("a", "b"), file("a", "2")), build.ReasonSourceInvalid, "twice"},
		"a file in a file":           {pack(t, file("a", "1"), file("a/b", "2")), build.ReasonSourceInvalid, "beside what it would be in"},
		"too many bytes":             {pack(t, file("a", strings.Repeat("x", 700)), file("b", strings.Repeat("x", 700))), build.ReasonSourceTooLarge, "more than the 0 MB"},
		"too many files":             {pack(t, file("1", ""), file("2", ""), file("3", ""), file("4", ""), file("5", "")), build.ReasonSourceTooLarge, "more than the 4 files"},
		"too many directories":       {pack(t, file("a/b/c/d/e", "")), build.ReasonSourceTooLarge, "more than the 4 files and directories"},
		"too many levels":            {pack(t, file(strings.Repeat("a/", 101)+"f", "")), build.ReasonSourceInvalid, `begins with "a/a/`},
		"a path that is too long":    {pack(t, file(strings.Repeat("aaaa/", 1<<16)+"f", "")), build.ReasonSourceInvalid, "is longer than 3072 bytes"},
		"a name that is too long":    {pack(t, file("b/"+strings.Repeat("a", 300), "")), build.ReasonSourceInvalid, "is longer than 255 bytes"},
		"a link that is too long":    {pack(t, link("a", strings.Repeat("a", 5000))), build.ReasonSourceInvalid, "is too long for this machine"},
		"a link to nothing":          {pack(t, link("a", "")), build.ReasonSourceInvalid, "leads nowhere"},
		"no gzip":                    {plain.Bytes(), build.ReasonSourceInvalid, "no gzip tarball"},
		"nothing":                    {nil, build.ReasonSourceInvalid, "no gzip tarball"},
		"a text":                     {[]byte("hello"), build.ReasonSourceInvalid, "no gzip tarball"},
		"half of one":                {whole[:len(whole)/2], build.ReasonSourceInvalid, "not a whole"},
		"a damaged one":              {damaged, build.ReasonSourceInvalid, "whole"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := archive.Limits{Bytes: 1000, Entries: 4}
			if name == "half of one" || name == "a damaged one" {
				limits = archive.Default
			}
			dir, _, err := unpack(t, bytes.NewReader(c.tarball), limits)
			failure, ok := errors.AsType[*build.Failure](err)
			if !ok || failure.Reason != c.reason || !strings.Contains(failure.Message, c.words) {
				t.Errorf("got %v; want %s %s", err, c.reason, c.words)
			}
			beside, err := os.ReadDir(filepath.Dir(dir))
			if err != nil || len(beside) != 1 {
				t.Errorf("beside the tree there is %v, %v", beside, err)
			}
		})
	}
}

// TestTroubleWithReadingIsNoFailure breaks the connection, and cancels the build.
func TestTroubleWithReadingIsNoFailure(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is broken")
	whole := pack(t, file("a", strings.Repeat(rand.Text(), 1000)))
	_, _, err := unpack(t, io.MultiReader(bytes.NewReader(whole[:100]), iotest.ErrReader(broken)), archive.Default)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	tree, err := os.OpenRoot(t.TempDir())
	check.Must(t, err)
	defer tree.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := archive.Unpack(ctx, bytes.NewReader(whole), tree, archive.Default); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
