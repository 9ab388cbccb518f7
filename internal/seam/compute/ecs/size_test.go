package ecs

import (
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

func TestFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cores  float64
		memory int
		want   size
	}{
		{0.1, 1, size{256, 512}},
		{0.25, 513, size{256, 1024}},
		{0.25, 1025, size{256, 2048}},
		{0.25, 2049, size{512, 3072}},
		{0.3, 100, size{512, 1024}},
		{1, 2048, size{1024, 2048}},
		{1, 8193, size{2048, 9216}},
		{1.1, 1, size{2048, 4096}},
		{3, 30721, size{8192, 32768}},
		{8, 61440, size{8192, 61440}},
		{8, 61441, size{16384, 65536}},
		{16, 122880, size{16384, 122880}},
		{17, 1, size{16384, 122880}},
		{0.1, 1 << 30, size{16384, 122880}},
		{1e300, 1, size{16384, 122880}},
	} {
		if got := fit(c.cores, c.memory); got != c.want {
			t.Errorf("fit(%v, %d): got %v, want %v", c.cores, c.memory, got, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, want compute.Resources }{
		{compute.Resources{}, compute.Resources{CPU: 0.5, MemoryMB: 1024, MinScale: 1, MaxScale: 1}},
		{compute.Resources{CPU: 2, MaxScale: 3}, compute.Resources{CPU: 2, MemoryMB: 4096, MinScale: 1, MaxScale: 3}},
		{compute.Resources{MemoryMB: 300, MinScale: 4, MaxScale: 2}, compute.Resources{CPU: 0.5, MemoryMB: 300, MinScale: 4, MaxScale: 4}},
	} {
		if got := c.given.OrDefaults(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.given, got, c.want)
		}
	}
}
