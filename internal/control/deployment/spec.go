package deployment

import (
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// knownDeployments is how many deployments a process keeps decoded, and knownSize how large the body of one may be.
	knownDeployments = 20_000
	knownSize        = 2 << 10
)

// knownDeployment is a deployment as it was read once.
type knownDeployment struct {
	Deployment

	// graphs and crashed are what the attributes said; they change without the version.
	graphs, crashed string
}

// decode reads a deployment. What it is decoded to is kept, as that is most of what reading a list costs; the item itself is read each time, and tells by its
// version whether what is kept still counts. What the members of a Deployment point to is shared by all who read it, and never changed.
func (s *Store) decode(ref Ref, item *table.Item) (Deployment, error) {
	version, graphs, crashed := item.Int(record.Version), item.Text(attrGraphs), item.Text(attrCrashed)
	if known, ok := s.known.Get(ref, version); ok && known.graphs == graphs && known.crashed == crashed {
		d := known.Deployment
		// These change without the version, too.
		d.event, d.restarts, d.Canary = item.Text(attrEvent), item.Text(attrRestart), int(item.Int(attrCanary))
		d.Stopped, d.Leftover = item.Bool(attrStopped), leftoverOf(item)
		return d, nil
	}
	d, err := decodeHead(ref, item)
	if err != nil {
		return Deployment{}, err
	}
	if err := record.Decode(item, &d.Spec); err != nil {
		return Deployment{}, err
	}
	d.watched, d.referred = d.watch(), d.SecretReferences
	if len(item.Body) <= knownSize {
		s.known.Keep(ref, version, &knownDeployment{d, graphs, crashed})
	}
	return d, nil
}
