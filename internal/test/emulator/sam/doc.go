// Package sam runs the stack's functions under the real SAM CLI: `sam local start-api` for the
// buffered routes and `sam local start-lambda` for the functions that the workflows call. Both
// run each function in a container, so they need a Docker engine.
//
// The emulators beside this package serve the features that SAM does not emulate (streamed
// responses, gateway responses, the authorizer's cache). Containers reach the services of this
// machine as host.docker.internal.
package sam
