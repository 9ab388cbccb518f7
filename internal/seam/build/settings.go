package build

import (
	"slices"
	"strings"
)

// Settings are what the configuration file of a repository asks of the agent server.
type Settings struct {
	HTTP *HTTP `json:"http,omitempty"`
	// Threads is checkpointer.ttl, and Items is store.ttl.
	Threads *ThreadTTL `json:"threads,omitempty"`
	Items   *ItemTTL   `json:"items,omitempty"`
}

// Keys are the keys of the configuration file that the settings were read from. A runtime serves
// no repository with one of these keys unless the platform has read it, too.
func (s Settings) Keys() []string {
	var keys []string
	if s.HTTP != nil {
		keys = append(keys, "http")
	}
	if s.Threads != nil {
		keys = append(keys, "checkpointer")
	}
	if s.Items != nil {
		keys = append(keys, "store")
	}
	return keys
}

// ThreadTTL is how long threads live after they last changed, unless their creation says it.
type ThreadTTL struct {
	// Strategy is "delete" or "keep_latest".
	Strategy string `json:"strategy"`
	// Minutes is 0 for ever.
	Minutes float64 `json:"minutes,omitempty"`
}

// ItemTTL is how long items of the store live, unless their writer says it.
type ItemTTL struct {
	// Minutes is nil for ever.
	Minutes *float64 `json:"minutes,omitempty"`
	// Still says that a reader does not begin an item's time anew, unless it asks for that.
	Still bool `json:"still,omitempty"`
}

// HTTP is the key http.
type HTTP struct {
	// App is the repository's own HTTP application, "path:variable", "" for none.
	App string `json:"app,omitempty"`
	// Disabled are the groups of routes that are not served: "assistants", "threads", "runs",
	// "store", "meta", "mcp", "a2a", "ui"; with "webhooks" no run tells an address of its end.
	Disabled []string `json:"disabled,omitempty"`
	// CORS are the rules for pages of other origins, nil for those of the server.
	CORS *CORS `json:"cors,omitempty"`
	// Include and Exclude are patterns of the headers that graphs find in their configuration.
	// Exclude counts first.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// MountPrefix is what all paths begin with, "/api"; "" for nothing.
	MountPrefix string `json:"mount_prefix,omitempty"`
	// RouteAuth asks for the credentials of the agent server at the routes of App, too.
	RouteAuth bool `json:"route_auth,omitempty"`
}

// Disables tells whether a group of routes is not served; nil disables none.
func (h *HTTP) Disables(group string) bool { return h != nil && slices.Contains(h.Disabled, group) }

// Header tells what the patterns say of a header, by its name in lower case: that graphs see it, or
// that they do not. Where no pattern matches, nothing is said.
func (h *HTTP) Header(name string) (shown, said bool) {
	if h == nil {
		return false, false
	}
	matches := func(pattern string) bool { return matchesHeader(strings.ToLower(pattern), name) }
	if slices.ContainsFunc(h.Exclude, matches) {
		return false, true
	}
	shown = slices.ContainsFunc(h.Include, matches)
	return shown, shown
}

// matchesHeader tells whether a pattern, in which * stands for any text, matches all of a name.
func matchesHeader(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for {
		if matchesHeader(rest, name) {
			return true
		}
		if name == "" {
			return false
		}
		name = name[1:]
	}
}

// CORS is the key http.cors. A list that is nil leaves the choice to the server.
type CORS struct {
	Origins []string `json:"origins,omitempty"`
	// OriginPattern is a regular expression that matches all of an origin, "" for none.
	OriginPattern string   `json:"origin_pattern,omitempty"`
	Methods       []string `json:"methods,omitempty"`
	Headers       []string `json:"headers,omitempty"`
	Exposed       []string `json:"exposed,omitempty"`
	Credentials   bool     `json:"credentials,omitempty"`
	// MaxAge is for how many seconds a browser need not ask again, nil for the server's own.
	MaxAge *int `json:"max_age,omitempty"`
}
