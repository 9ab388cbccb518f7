// Package assistant holds the assistants of a deployment: a graph with a configuration of its
// own, in versions.
//
// Each graph has a default assistant, even if no client has created it. Its id follows from
// the graph's name (DefaultID). It is stored only when a client changes it. A change makes a
// new version. One of the versions is the current version: runs use it and the assistant shows
// it. If a client sets another version as the latest, the whole content of this version comes
// back.
package assistant
