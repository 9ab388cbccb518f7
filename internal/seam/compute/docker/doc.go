// Package docker is the compute target of one machine for container images: it runs each replica of
// a release as a container of the machine's Docker engine, published on a loopback port.
//
// Package replica decides how many replicas there are, starts them again and counts their callers;
// this one readies the image and starts containers. An image's tag is resolved to a digest once per
// release, which is part of the release's status: applied again with it, the release runs the same
// image. A replica is what Kubernetes calls a pod, as far as one engine can be one: volumes that
// live as long as the replica, init containers that run to their end first, and sidecars in the
// replica's network. Unsupported says, before a deployment is created, what one engine cannot be.
//
// Everything that the target makes carries its server's label. What an earlier server left running
// is removed before the first release is started.
package docker
