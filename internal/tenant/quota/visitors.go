package quota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// VisitorPart is the part, 1 in so many, of a workspace's quotas that the visitors of one
	// deployment may use beside the quotas: most of a server stays for callers with keys.
	VisitorPart = 4
	// AddressPart is the part of it that visitors of one address may use: one visitor leaves
	// half to the others.
	AddressPart = 2
)

// PartOf is a part of a quota, which is at least 1 unless the quota is 0.
func PartOf(quota, part int64) int64 { return min(quota, max(1, quota/part)) }

// RefuseVisitors returns the fault of a request beyond the part of a quota that visitors have.
func RefuseVisitors(what string, most int64) *fault.Error {
	refusal := fault.New(fault.TooMany, "There are too many visitors without a key: they may have %d %s.", max(1, most), what)
	refusal.RetryAfter = retryAfter
	return refusal
}

// Visit counts a request of a visitor of a deployment, and takes a place for the visitor's
// connection until leave is called, as Count and Hold do for callers of a workspace. It counts for
// the visitor's address first, so that an address that is refused takes nothing from the others.
func (s *Shared) Visit(ctx context.Context, workspace, deployment, address string) (leave func(), err error) {
	// A key of the table has a bounded length, and shows no address. It does not hide an address
	// from a reader of the table that tries all addresses.
	digest := sha256.Sum256([]byte(deployment + " " + address))
	address = hex.EncodeToString(digest[:16])
	place := &streamPlace{Shared: s, workspace: workspace}
	for _, of := range []struct {
		address string
		part    int64
	}{{address, VisitorPart * AddressPart}, {"", VisitorPart}} {
		requests, streams := PartOf(s.limits.Of(Requests), of.part), PartOf(s.limits.Of(Streams), of.part)
		err := s.count(ctx, "visitors\x00"+deployment+"\x00"+of.address, timedCount{
			most:   perWindow(requests),
			key:    func(window int64) table.Key { return keys.Visits(workspace, deployment, of.address, window) },
			refuse: func() *fault.Error { return RefuseVisitors("requests a second", requests) },
		})
		if err != nil {
			return nil, err
		}
		place.counts = append(place.counts, timedCount{
			most: streams, refuse: func() *fault.Error { return RefuseVisitors("connections at once", streams) },
			key: func(term int64) table.Key { return keys.Visitors(workspace, deployment, of.address, term) },
		})
	}
	return place.hold(ctx)
}
