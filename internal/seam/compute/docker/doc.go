// Package docker is the compute target of one machine for container images: it runs each replica of
// a release as a container of the machine's Docker engine, published on a loopback port.
//
// Package replica decides how many replicas there are, starts them again and counts their
// callers. This package prepares the image and starts containers. An image's tag is resolved
// to a digest once per release. The digest is part of the release's status. A release that is
// applied again with it runs the same image. A replica corresponds to a pod of Kubernetes, as
// far as one engine can run a pod: volumes that live as long as the replica, init containers
// that run to their end first, and sidecars in the replica's network. Unsupported says, before
// a deployment is created, which parts of a pod one engine cannot run.
//
// An image that the engine has pulled for a release is removed with the last release that uses it.
//
// Everything that the target makes carries its server's label. Containers that an earlier
// server left running are removed before the first release is started.
package docker
