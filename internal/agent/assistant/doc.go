// Package assistant holds the assistants of a deployment: a graph with a configuration of its own,
// in versions.
//
// Each graph has a default assistant without being asked for one, whose id follows from the graph's
// name (DefaultID). It is stored only when somebody changes it. A change makes a new version; one
// of the versions is the current one, which runs take and which the assistant shows. Setting
// another as the latest brings back all of it.
package assistant
