package state_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestADeltaLeadsFromOneTextToTheNext checks this for texts that share parts, in any order,
// and for long chains of them.
func TestADeltaLeadsFromOneTextToTheNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 100), 1, 5).Draw(t, "parts")
		compose := func(name string) []byte {
			return bytes.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, name), nil)
		}
		old := compose("first")
		text := state.NewText(old)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			next := compose("next")
			check.Must(t, text.Apply(state.Delta(old, next)))
			if !bytes.Equal(text.Bytes(), next) || text.Len() != len(next) {
				t.Fatalf("got %x, want %x", text.Bytes(), next)
			}
			old = next
		}
	})
}

// TestADeltaIsAsLargeAsTheChange checks this for changes at the beginning, in the middle and
// at the end of a text.
func TestADeltaIsAsLargeAsTheChange(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10_000, 1_000_000} {
		old := noise(size)
		next := bytes.Join([][]byte{noise(40), old[40 : size/2], noise(100), old[size/2+7:], noise(300)}, nil)
		if got := len(state.Delta(old, next)); got > 40+100+300+2*32+40 {
			t.Errorf("a change of 440 bytes in %d takes %d", size, got)
		}
	}
}

func noise(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(rand.Uint32())
	}
	return out
}

func TestADeltaOfAnotherTextIsRefused(t *testing.T) {
	t.Parallel()
	for name, delta := range map[string][]byte{
		"copies what is not there": state.Delta([]byte("0123456789"), []byte("0123456789!")),
		"ends within a number":     {0x80}, "ends within bytes": {8, 'a'}, "ends before a place": {9}, "copies too much": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0},
	} {
		if err := state.NewText([]byte("short")).Apply(delta); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// BenchmarkDelta appends to texts of different length, and reads a chain of a thousand such
// changes.
func BenchmarkDelta(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000} {
		old := noise(size)
		next := append(bytes.Clone(noise(40)), append(bytes.Clone(old[40:size-50]), noise(550)...)...)
		b.Run(fmt.Sprint("write ", size), func(b *testing.B) {
			for b.Loop() {
				state.Delta(old, next)
			}
		})
		delta := state.Delta(old, next)
		b.Run(fmt.Sprint("read 1000 on ", size), func(b *testing.B) {
			for b.Loop() {
				text := state.NewText(old)
				for range 1000 {
					check.Must(b, text.Apply(delta))
				}
				text.Bytes()
			}
		})
	}
}
