package main

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/disk"
)

func TestDoctorLooksForRoom(t *testing.T) {
	t.Parallel()
	const mib = int64(1) << 20
	for free, want := range map[int64]string{0: "0B are free, and 512MiB are kept free", 511 * mib: "511MiB are free", 512 * mib: "has room"} {
		look := func(string) (disk.Usage, error) { return disk.Usage{Free: free, Total: 100 << 30}, nil }
		if f := room("nowhere", disk.Default, look); f.Needed || f.OK != (free == 512*mib) || !strings.Contains(f.Found, want) || f.OK != (f.Remedy == "") {
			t.Errorf("%d bytes: %+v, want %q", free, f, want)
		}
	}
}
