package buildtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// Tarball packs files in the same way as clients that upload files for a build.
func Tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		check.Must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(files[name]))}))
		_, err := io.WriteString(w, files[name])
		check.Must(t, err)
	}
	check.Must(t, errors.Join(w.Close(), zipped.Close()))
	return packed.Bytes()
}
