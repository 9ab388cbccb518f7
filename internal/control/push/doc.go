// Package push makes a revision of a deployment with build_on_push when somebody pushes to its
// branch: the rules of the webhooks that tell of it.
//
// A webhook comes from the server's GitHub App, for all repositories of all its installations
// (Receiver.App), or from one repository at any host that signs as GitHub does, or at GitLab, for
// one deployment (Receiver.Deployment). GitLab signs nothing and sends the secret itself, and what
// it tells is read as if GitHub had sent it. The path of a push from the App:
//
//  1. The signature over the body is checked, in constant time and against each secret, before
//     anything is read from it.
//  2. A push of a tag, and one that creates or deletes a branch, does nothing.
//  3. The event names an installation, package integration the workspaces that it is bound to, and
//     an index in each workspace the deployments that watch the branch. A repository that nobody
//     watches costs one read for each workspace, and nobody can tell it from one that is watched.
//  4. For each deployment, the watch is read again (an index may lag behind), the delivery is
//     claimed, and Builder makes the revision. A delivery that comes again does nothing where it
//     has succeeded, and the rest where it has not. A claim of a process that died lapses after two
//     minutes.
//
// A watch is an item in the deployment's partition, written in the transaction that creates,
// changes or deletes the deployment (Watch.Write), so that the two never differ.
//
// A burst of pushes needs no rule of its own. Each makes a revision; the first takes the
// deployment's rollout slot, the others are queued, and when the slot frees the newest goes and all
// before it are SKIPPED without a write. A build clones the head of the branch at the time when it
// starts, so that the newest holds what all of them pushed, in whatever order their deliveries
// came.
//
// A fork is another repository with another name, and its pushes are its own. A repository that is
// renamed keeps its id: under that, the names are noted that it was built under, and a push under a
// new name finds the deployments that were made with an old one, which GitHub still clones. One
// that was renamed before its first push is found when its deployment is made anew.
package push
