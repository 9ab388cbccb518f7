package assistant

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Ref names an assistant. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Deployment, Assistant string
}

// Content is the content of one version of an assistant. Config, Context and Metadata are JSON
// objects.
type Content struct {
	Graph       string          `json:"graph"`
	Name        string          `json:"name"`
	Description *string         `json:"description,omitempty"`
	Config      json.RawMessage `json:"config"`
	Context     json.RawMessage `json:"context"`
	Metadata    json.RawMessage `json:"metadata"`
}

// Assistant is a graph with a configuration of its own.
type Assistant struct {
	Ref
	Content
	// Version is the version of the content; versions count from 1.
	Version          int64
	Created, Updated time.Time
	// newest is the highest version. stored says whether an item is stored, change how often
	// this item has changed.
	newest, change int64
	stored         bool
}

// namespace is the UUID namespace of default assistants, which clients of the public service
// know. It is the OID namespace of RFC 9562, with a version nibble that the service has always
// used.
var namespace = uuid.MustParse("6ba7b821-9dad-11d1-80b4-00c04fd430c8")

// DefaultID is the id of a graph's default assistant.
func DefaultID(graph string) string { return uuid.NewSHA1(namespace, []byte(graph)).String() }

var emptyObject = json.RawMessage("{}")

// systemMetadata marks the assistants that no client has created.
var systemMetadata = json.RawMessage(`{"created_by":"system"}`)

// Default returns the assistant that a graph has even if no client has created it.
func Default(workspace, deployment, graph string, created time.Time) Assistant {
	return Assistant{
		Ref:     Ref{workspace, deployment, DefaultID(graph)},
		Content: Content{Graph: graph, Name: graph, Config: emptyObject, Context: emptyObject, Metadata: systemMetadata},
		Version: 1, Created: created, Updated: created, newest: 1,
	}
}

const (
	kind        = "assistant"
	versionKind = "assistant-version"
)

// Names of the assistant item's attributes: the version that the assistant shows, and the
// highest version.
const (
	attrCurrent = "current"
	attrNewest  = "newest"
)

// decode reads an assistant, or a version of it: the caller knows which of both.
func decode(ref Ref, kind string, item *table.Item) (Assistant, error) {
	r := record.Read(item, kind)
	a := Assistant{
		Ref: ref, Version: item.Int(attrCurrent), Created: r.Created(), Updated: r.Updated(),
		newest: item.Int(attrNewest), change: item.Int(record.Version), stored: true,
	}
	r.Decode(&a.Content)
	return a, r.Err()
}

// put returns the write of an assistant's item.
func (a Assistant) put(now time.Time, condition table.Cond) table.Put {
	key, own := keys.Assistant(a.Workspace, a.Deployment, a.Assistant), table.Attrs{attrCurrent: a.Version, attrNewest: a.newest}
	return table.Put{Item: record.Item(key, kind, now, own, record.Encode(a.Content)), If: condition}
}

// putVersion returns the write of a version's item. It replaces a version that a deleted
// assistant with the same id has left.
func (a Assistant) putVersion(now time.Time) table.Put {
	key := keys.AssistantVersion(a.Workspace, a.Deployment, a.Assistant, a.Version)
	return table.Put{Item: record.Item(key, versionKind, now, nil, record.Encode(a.Content))}
}

// NotFound returns the fault of an assistant that does not exist.
func NotFound(assistant string) error {
	return fault.New(fault.NotFound, "Assistant %s not found.", assistant)
}

// maxContent is how many bytes the configuration, context and metadata of an assistant may hold
// together: each run carries them.
const maxContent = 256 << 10

// check fills in missing values, and returns an error for content that no run could take.
func (c *Content) check() error {
	size := 0
	for _, member := range []struct {
		name  string
		value *json.RawMessage
	}{{"config", &c.Config}, {"context", &c.Context}, {"metadata", &c.Metadata}} {
		if text := bytes.TrimSpace(*member.value); len(text) == 0 || string(text) == "null" {
			*member.value = emptyObject
		}
		size += len(*member.value)
	}
	if size > maxContent {
		return fault.New(fault.Invalid, "config, context and metadata hold %d bytes together: the limit is %d.", size, maxContent)
	}
	return nil
}
