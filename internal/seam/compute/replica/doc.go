// Package replica keeps releases running as replicas on one machine. It is what the targets of
// processes and of containers have in common; a Host says how one replica is started.
//
// Each replica has a supervisor, one goroutine that starts it, waits until it answers GET /ping,
// and starts it again when it ends. Until the first replica has been healthy once, its end is the
// release's failure; from then on each is restarted for as long as it is wanted. Callers get the
// healthy replica with the fewest callers. A release of more than one size has a scaler, which adds
// a replica as soon as there are more callers than the present ones are meant for, those who queue
// for it included, and takes one away, when its callers have left, after there were fewer for a
// while. Everything that others ask of a release, they read from the state that is published.
//
// A restart makes a second release of the revision, the successor, which takes the place of the
// first when it is healthy. What they have in common is erased with the last one.
package replica
