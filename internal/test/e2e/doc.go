// Package e2e holds the end-to-end tests: what is promised to those who use a server, told as
// stories and checked over HTTP alone.
//
// A target (target_test.go) knows how to start, kill and restart one kind of server; everything
// else speaks the interface and runs against any of them. The server and the agents are built once,
// from the sources beside this package, with the race detector if the tests have it. Agents come
// from git repositories that the tests write.
package e2e
