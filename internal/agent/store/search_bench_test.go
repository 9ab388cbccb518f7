package store_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// BenchmarkSearchBySimilarity searches a namespace for the ten items that are most similar,
// from the table and from memory.
func BenchmarkSearchBySimilarity(b *testing.B) {
	for _, dims := range []int{384, 1536} {
		for _, items := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("dims=%d/items=%d", dims, items), func(b *testing.B) { benchmarkSearch(b, dims, items) })
		}
	}
}

func benchmarkSearch(b *testing.B, dims, items int) {
	tb := fixtures.DomainTable(b, clock.System)
	reading := store.NewStore(tb, clock.System, quota.Limits{}, slog.Default())
	random := func() store.Vectors {
		numbers := make([]float32, dims)
		for i := range numbers {
			numbers[i] = float32(rand.NormFloat64())
		}
		return vectors(b, "s", dims, numbers...)
	}
	value := json.RawMessage(`{"text": "` + strings.Repeat("word ", 20) + `"}`)
	for i := range items {
		check.Must(b, reading.Put(b.Context(), owner, []string{"n"}, fmt.Sprintf("%06d", i), value, 0, random()))
	}
	query := random()
	for name, s := range map[string]*store.Store{"table": reading, "memory": store.NewStore(tb, clock.System, quota.Limits{}, slog.Default()).Hold(1 << 30)} {
		b.Run(name, func(b *testing.B) {
			near(b, s, query, 10)
			b.ReportAllocs()
			for b.Loop() {
				near(b, s, query, 10)
			}
		})
	}
}
