// Package metric names the metric by which the services of agents scale. It is apart from package
// ecs, so that the functions that write metrics do not link the SDKs of functions that run agents.
package metric

const (
	// Busy is how long runs have been with the agent of a release, in seconds. Over minutes, its
	// sum for each minute is 60 times the number of runs that the release worked on.
	Busy = "RunSeconds"
	// Revision is the dimension of Busy: each release is a service of its own.
	Revision = "Revision"
)

// Namespace is the namespace of the metrics of a stack, which its name prefix names.
func Namespace(prefix string) string { return "Slipway/" + prefix }
