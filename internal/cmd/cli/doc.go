// Package cli is the command line for people and pipelines: it deploys a directory, and shows
// the result. It talks to a server only through the public HTTP interface, so it works with a
// one-machine server and with a stack.
package cli
