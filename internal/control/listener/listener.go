package listener

import (
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Ref names a listener. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Listener string
}

// Key is the listener's storage key.
func (r Ref) Key() table.Key { return keys.Listener(r.Workspace, r.Listener) }

// ComputeConfig is the interface's member of that name.
type ComputeConfig struct {
	// K8sNamespaces are the namespaces of the cluster in which the listener may run releases.
	// An empty list is null.
	K8sNamespaces []string `json:"k8s_namespaces"`
}

// Spec is the user's request for a listener. ComputeType and ComputeID never change.
type Spec struct {
	// ComputeType is k8s, a Kubernetes cluster: there is no other type.
	ComputeType   string        `json:"compute_type"`
	ComputeID     string        `json:"compute_id"`
	ComputeConfig ComputeConfig `json:"compute_config"`
}

// Listener is a party that runs releases.
type Listener struct {
	Ref
	Spec
	// Version is the version of the listener's program, as a user or the listener itself gave
	// it last; nil when it was never given.
	Version          *string
	Created, Updated time.Time
	// LastSeen is when a process last spoke for the listener, zero when no process ever did.
	// Until is when the session of that process ends, unless it is renewed.
	LastSeen, Until time.Time
	// OfflineSince is when an event reported that the listener does not call any more, zero while
	// the listener calls.
	OfflineSince time.Time

	holder string
	epoch  int64
	// event is the newest event of the listener, "" when there is no event; watched is set
	// if the listener has called since the platform began to report offline listeners.
	event   string
	watched bool
	// leaving is set while the listener is being deleted; users cannot see it any more.
	leaving bool
	// version counts the changes by users and the added deployments; a session does not change it.
	version int64
}

// ChangeCount is the version of the resource for ETags: it counts the changes by users and the
// deployments that were added, not the writes of the listener's own calls.
func (l Listener) ChangeCount() int64 { return l.version }

// expected refuses a change that was requested for other versions than the present version.
func (l Listener) expected(versions record.Versions) error {
	return versions.Check(l.version, "Listener ID "+l.Listener)
}

// Online reports whether a process holds the listener's session.
func (l Listener) Online(now time.Time) bool { return l.holder != "" && now.Before(l.Until) }

// Has reports whether the listener may run releases in the namespace.
func (l Listener) Has(namespace string) bool {
	return slices.Contains(l.ComputeConfig.K8sNamespaces, namespace)
}

const kind = "listener"

const (
	attrSoftware = "software"
	attrHolder   = "holder"
	attrEpoch    = "epoch"
	attrUntil    = "until"
	attrSeen     = "seen"
	attrAway     = "away"
	attrEvent    = "event"
	attrLeaving  = "leaving"
)

func decode(ref Ref, item *table.Item) (Listener, error) {
	r := record.Read(item, kind)
	l := Listener{
		Ref: ref, Created: r.Created(), Updated: r.Updated(), LastSeen: r.Time(attrSeen), OfflineSince: r.Time(attrAway), Until: r.Time(attrUntil),
		event: item.Text(attrEvent), watched: item.Attrs[attrAway] != nil, holder: item.Text(attrHolder), epoch: item.Int(attrEpoch),
		leaving: item.Bool(attrLeaving), version: item.Int(record.Version),
	}
	if software := item.Text(attrSoftware); software != "" {
		l.Version = &software
	}
	r.Decode(&l.Spec)
	return l, r.Err()
}

// unchanged is the condition that, since the listener was read, no user changed it and no
// deployment was added to it.
func (l Listener) unchanged() table.Cond { return table.Equals(record.Version, l.version) }

// present is the condition that a listener exists and is not being deleted.
func present() table.Cond { return table.Equals(attrLeaving, false) }
