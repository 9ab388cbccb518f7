// Package replica keeps releases running as replicas on one machine. It is the common part of
// the targets for processes and for containers; a Host starts one replica.
//
// Each replica has a supervisor, one goroutine that starts it, waits until it answers GET
// /ping, and starts it again when it ends. Until the first replica has been healthy once, its
// end is the release's failure. From then on each replica is restarted for as long as it is
// wanted. Callers get the healthy replica with the fewest callers. A release whose number of
// replicas may vary has a scaler. The scaler adds a replica as soon as there are more callers,
// queued callers included, than the present replicas are meant for. After there were fewer
// callers for a while, it takes a replica away, when that replica's callers have left. Other
// goroutines read everything that they need from the state that the release publishes.
//
// A release that may go down to no replica sleeps while nobody calls it, and its next caller
// wakes it.
//
// A restart makes a second release of the revision, the successor, which takes the place of
// the first when it is healthy. The files that both share are erased when the last of them has
// ended.
package replica
