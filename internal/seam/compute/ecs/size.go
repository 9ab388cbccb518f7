package ecs

import (
	"math"
	"strconv"
)

// size is a combination of CPU units and MiB that Fargate has.
type size struct{ cpu, memory int }

// sizes are the CPU units of Fargate (1024 units are one core) with the memory in MiB that
// each may have: the smallest, the largest, and the step between two sizes.
var sizes = []struct{ cpu, from, to, step int }{
	{256, 512, 2048, 512}, // in fact 512, 1024 and 2048, see fit
	{512, 1024, 4096, 1024},
	{1024, 2048, 8192, 1024},
	{2048, 4096, 16384, 1024},
	{4096, 8192, 30720, 1024},
	{8192, 16384, 61440, 4096},
	{16384, 32768, 122880, 8192},
}

// fit returns the smallest size with at least the given cores and memory, or else the largest
// size that exists.
func fit(cores float64, memory int) size {
	units := int(math.Ceil(min(cores, 1000) * 1024))
	for _, s := range sizes {
		if s.cpu < units || s.to < memory {
			continue
		}
		fitting := s.from
		for fitting < memory {
			fitting += s.step
		}
		if s.cpu == 256 && fitting == 1536 {
			fitting = 2048
		}
		return size{s.cpu, fitting}
	}
	largest := sizes[len(sizes)-1]
	return size{largest.cpu, largest.to}
}

func (s size) texts() (cpu, memory string) { return strconv.Itoa(s.cpu), strconv.Itoa(s.memory) }
