package agenthost

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// ends holds the first agent exit of each release that has not been reported to a caller yet.
type ends struct {
	mu    sync.Mutex
	last  int64
	noted []wire.End
}

// Alarm is the compute.Alarm of the host's target. It keeps the end for the next caller that asks.
func (h *Host) Alarm(_ context.Context, ref compute.Ref, status compute.Status) {
	h.ends.mu.Lock()
	defer h.ends.mu.Unlock()
	if slices.ContainsFunc(h.ends.noted, func(e wire.End) bool { return e.Ref == ref }) {
		return
	}
	h.ends.last++
	h.ends.noted = append(h.ends.noted, wire.End{Number: h.ends.last, Ref: ref, Status: status})
}

// giveEnds answers with the ends that the caller has not reported, and forgets the reported
// ends.
func (h *Host) giveEnds(r *http.Request) (any, error) {
	told, err := decode[wire.Told](r)
	if err != nil {
		return nil, err
	}
	h.ends.mu.Lock()
	defer h.ends.mu.Unlock()
	h.ends.noted = slices.DeleteFunc(h.ends.noted, func(e wire.End) bool { return e.Number <= told.Number })
	return append([]wire.End{}, h.ends.noted...), nil
}
