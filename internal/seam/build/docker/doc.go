// Package docker makes images of repositories with the machine's Docker engine, from the recipes of
// package dockerfile. It is what package build/local makes images with.
//
// It uses the engine's classic builder, because that bounds the memory of a build's steps, and says
// how a step has ended, which the engine's other builder does not without a client of its own. The
// build's context travels as a stream; no copy of it is written. An image is tagged with its
// revision, so that the engine keeps it for as long as there is the build, and is known by its id,
// which follows from its content.
package docker
