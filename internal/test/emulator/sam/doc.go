// Package sam runs the stack's functions under the real SAM CLI: `sam local start-api` for the
// buffered routes and `sam local start-lambda` for what the workflows call. Both run each function
// in a container, so they need a Docker engine.
//
// What SAM does not emulate (streamed responses, gateway responses, the authorizer's cache) is
// served by the emulators beside this package. Containers reach the services of this machine as
// host.docker.internal.
package sam
