// Package e2e holds the end-to-end tests: they check the promises to users of a server, in the
// form of stories and only over HTTP.
//
// A target (target_test.go) knows how to start, kill and restart one kind of server; all other
// code uses the interface and runs against any target. The server and the agents are built
// once, from the sources beside this package, with the race detector if the tests have it.
// Agents come from git repositories that the tests write.
package e2e
