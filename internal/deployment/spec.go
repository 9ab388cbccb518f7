package deployment

import (
	"sync"

	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

const (
	// knownSpecs is how many specs a process keeps decoded, and knownSize how large the body of one may be.
	knownSpecs = 10_000
	knownSize  = 2 << 10
)

// specs keeps what bodies of deployments say, as decoding them is most of what reading a list costs. The item itself is read each time: what is kept
// counts only as long as its version is that of the item. What the members of a Spec point to is shared by all who read it, and never changed.
type specs struct {
	mu    sync.RWMutex
	known map[Ref]knownSpec
}

type knownSpec struct {
	version int64
	spec    Spec
}

// decode reads a deployment.
func (s *specs) decode(ref Ref, item *table.Item) (Deployment, error) {
	d, err := decodeHead(ref, item)
	if err != nil {
		return Deployment{}, err
	}
	if d.Spec, err = s.read(ref, item); err != nil {
		return Deployment{}, err
	}
	d.watched = d.watch()
	return d, nil
}

func (s *specs) read(ref Ref, item *table.Item) (Spec, error) {
	version := item.Int(record.Version)
	s.mu.RLock()
	known, ok := s.known[ref]
	s.mu.RUnlock()
	if ok && known.version == version {
		return known.spec, nil
	}
	var spec Spec
	if err := record.Decode(item, &spec); err != nil {
		return Spec{}, err
	}
	if len(item.Body) <= knownSize {
		s.keep(ref, knownSpec{version, spec})
	}
	return spec, nil
}

func (s *specs) keep(ref Ref, read knownSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= knownSpecs {
		s.known = make(map[Ref]knownSpec) // rare, and only costs to decode again
	}
	s.known[ref] = read
}
