// Package docker makes images of repositories with the machine's Docker engine, from the
// recipes of package dockerfile. Package build/local makes its images with it.
//
// It uses the engine's classic builder, because the classic builder bounds the memory of a
// build's steps and reports how a step has ended. The engine's other builder needs a client of
// its own for this. The build's context is sent as a stream; no copy of it is written. An
// image is tagged with its revision, so that the engine keeps the image for as long as the
// build exists. The image is known by its id, which follows from its content.
package docker
