package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Settings are the settings of the agent server that a repository's configuration file asks
// for.
type Settings struct {
	HTTP *HTTP `json:"http,omitempty"`
	// Threads is checkpointer.ttl, and Items is store.ttl.
	Threads *ThreadTTL `json:"threads,omitempty"`
	Items   *ItemTTL   `json:"items,omitempty"`
	// Index is store.index.
	Index *Index `json:"index,omitempty"`
	// Webhooks is webhooks.
	Webhooks *Webhooks `json:"webhooks,omitempty"`
}

// Keys returns the keys of the configuration file that the settings were read from. A runtime
// serves a repository with such a key only if the platform has read the key, too.
func (s Settings) Keys() []string {
	var keys []string
	if s.HTTP != nil {
		keys = append(keys, "http")
	}
	if s.HasUI() {
		keys = append(keys, "ui", "ui_config")
	}
	if s.Threads != nil {
		keys = append(keys, "checkpointer")
	}
	if s.Items != nil || s.Index != nil {
		keys = append(keys, "store")
	}
	if s.Webhooks != nil {
		keys = append(keys, "webhooks")
	}
	return keys
}

// HasUI reports whether the repository has components of a user interface.
func (s Settings) HasUI() bool { return s.HTTP != nil && s.HTTP.UI }

// ThreadTTL is how long threads live after their last change, unless the creation of a thread
// sets a TTL of its own.
type ThreadTTL struct {
	// Strategy is "delete" or "keep_latest".
	Strategy string `json:"strategy"`
	// Minutes is 0 if threads live for ever.
	Minutes float64 `json:"minutes,omitempty"`
}

// ItemTTL is how long items of the store live, unless the writer of an item sets a TTL of its
// own.
type ItemTTL struct {
	// Minutes is nil if items live for ever.
	Minutes *float64 `json:"minutes,omitempty"`
	// Still reports whether a read does not begin an item's TTL again, unless the reader asks
	// for it.
	Still bool `json:"still,omitempty"`
}

// Index says how items of the store are embedded, so that a search can rank them by
// similarity. The agent embeds them, with the repository's own packages.
type Index struct {
	// Embed is a function or an object of the repository, "path/to/file:variable", or the
	// name of a provider's model, "provider:model".
	Embed string `json:"embed"`
	// Dims is the number of dimensions of each vector.
	Dims int `json:"dims"`
}

// Space names the space of the vectors. Vectors of two spaces cannot be compared.
func (i Index) Space() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", i.Dims, i.Embed))
	return hex.EncodeToString(sum[:8])
}

// HTTP is the value of the key http.
type HTTP struct {
	// App is the repository's own HTTP application, "path:variable", or "" if there is no such
	// application.
	App string `json:"app,omitempty"`
	// UI reports whether the repository has components of a user interface, which its agent
	// serves below PathUI.
	UI bool `json:"ui,omitempty"`
	// Disabled are the groups of routes that are not served: "assistants", "threads", "runs",
	// "store", "meta", "mcp", "a2a", "ui"; if "webhooks" is disabled, no run reports its end
	// to an address.
	Disabled []string `json:"disabled,omitempty"`
	// CORS are the rules for pages of other origins, nil for the rules of the server.
	CORS *CORS `json:"cors,omitempty"`
	// Include and Exclude are patterns, as path.Match reads them, of the headers that graphs
	// find in their configuration. Exclude counts first.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// MountPrefix is the prefix of all paths, as "/api", or "" if there is no prefix.
	MountPrefix string `json:"mount_prefix,omitempty"`
	// RouteAuth makes the routes of App require the credentials of the agent server, too.
	RouteAuth bool `json:"route_auth,omitempty"`
}

// PathUI is where components of a user interface are served, below the URL of a deployment.
const PathUI = "/ui/"

// IsUI reports whether a path, without MountPrefix, is a path of the user interface.
func (h *HTTP) IsUI(path string) bool {
	return h.UI && !h.Disables("ui") && strings.HasPrefix(path, PathUI)
}

// Disables reports whether a group of routes is not served. A nil HTTP disables no group.
func (h *HTTP) Disables(group string) bool { return h != nil && slices.Contains(h.Disabled, group) }

// Header applies the patterns to a header, by its name in lower case. If a pattern matches,
// said is true, and shown reports whether graphs see the header. If no pattern matches, said
// is false.
func (h *HTTP) Header(name string) (shown, said bool) {
	if h == nil {
		return false, false
	}
	matches := func(pattern string) bool {
		matched, err := path.Match(strings.ToLower(pattern), name)
		return matched && err == nil // the build refuses a pattern that has an error
	}
	if slices.ContainsFunc(h.Exclude, matches) {
		return false, true
	}
	shown = slices.ContainsFunc(h.Include, matches)
	return shown, shown
}

// CORS is the value of the key http.cors. A list that is nil leaves the choice to the server.
type CORS struct {
	Origins []string `json:"origins,omitempty"`
	// OriginPattern is a regular expression that matches a whole origin, or "" if there is no
	// pattern.
	OriginPattern string   `json:"origin_pattern,omitempty"`
	Methods       []string `json:"methods,omitempty"`
	Headers       []string `json:"headers,omitempty"`
	Exposed       []string `json:"exposed,omitempty"`
	Credentials   bool     `json:"credentials,omitempty"`
	// MaxAge is the number of seconds in which a browser need not ask again, nil for the
	// server's own value.
	MaxAge *int `json:"max_age,omitempty"`
}
