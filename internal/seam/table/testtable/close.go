package testtable

import (
	"io"
	"testing"
)

func closing(t testing.TB, opened io.Closer) {
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
}
