package protocol

import (
	"slices"
	"strings"
)

// Filter says which events a reader wants.
type Filter struct {
	// Channels are the names of channels, which may include "custom:NAME".
	Channels []string
	// Namespaces are prefixes of namespaces; if it is empty, the reader wants all namespaces.
	Namespaces [][]string
	// Depth is how many levels below a prefix a namespace may be, nil for no bound.
	Depth *int
	// since is the number of the last event that the reader has.
	since int64
}

// Channels are the names that a filter may hold, in addition to "custom:NAME".
var Channels = []string{
	MethodValues, MethodUpdates, MethodMessages, MethodTools, MethodLifecycle, channelInput, MethodCheckpoints, MethodTasks, MethodCustom,
}

const channelInput = "input"

// IsChannel reports whether a name is the name of a channel.
func IsChannel(name string) bool {
	custom, isCustom := strings.CutPrefix(name, MethodCustom+":")
	return slices.Contains(Channels, name) || (isCustom && custom != "")
}

// Wants reports whether the reader wants an event.
func (f Filter) Wants(e Event) bool { return e.Seq > f.since && f.hears(e) && f.within(e.Namespace) }

func (f Filter) hears(e Event) bool {
	channel := e.Method
	if channel == MethodRequested || channel == MethodAnswered {
		channel = channelInput
	}
	return slices.Contains(f.Channels, channel) || (e.Method == MethodCustom && e.Name != "" && slices.Contains(f.Channels, MethodCustom+":"+e.Name))
}

func (f Filter) within(namespace []string) bool {
	return len(f.Namespaces) == 0 || slices.ContainsFunc(f.Namespaces, func(prefix []string) bool {
		return isPrefix(prefix, namespace) && (f.Depth == nil || len(namespace)-len(prefix) <= *f.Depth)
	})
}

// isPrefix compares segment by segment. A segment of the prefix without a task's id matches
// all tasks of the node.
func isPrefix(prefix, namespace []string) bool {
	if len(prefix) > len(namespace) {
		return false
	}
	for i, segment := range prefix {
		node, _, _ := strings.Cut(namespace[i], ":")
		if segment != namespace[i] && segment != node {
			return false
		}
	}
	return true
}
