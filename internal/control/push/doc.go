// Package push makes a revision of a deployment with build_on_push when a user pushes to its
// branch. It contains the rules for the webhooks that report such pushes.
//
// A webhook of the server's GitHub App reports pushes to all repositories of all its
// installations (Receiver.App). A webhook of one repository, at GitLab or at any host that signs
// as GitHub does, is for one deployment (Receiver.Deployment). GitLab signs nothing and sends the
// secret itself; its payload is read as if GitHub had sent it. The path of a push from the App:
//
//  1. The signature over the body is checked, in constant time and against each secret, before
//     anything is read from the body.
//  2. A push of a tag, and a push that deletes a branch, does nothing.
//  3. The event names an installation. Package integration finds the workspaces that the
//     installation is bound to, and an index in each workspace finds the deployments that
//     watch the branch. A repository that no deployment watches costs one read for each
//     workspace, and the sender cannot distinguish it from a repository that is watched.
//  4. For each deployment, the watch is read again (an index may lag behind), the delivery is
//     claimed, and Builder makes the revision. A delivery that comes again does nothing where
//     it has succeeded, and does the rest where it has not. A claim of a process that died
//     lapses after two minutes.
//
// A watch is an item in the deployment's partition, written in the transaction that creates,
// changes or deletes the deployment (Watch.Write), so that the two never differ.
//
// A burst of pushes needs no special rule. Each push makes a revision. The first revision
// takes the deployment's rollout slot and the others are queued. When the slot becomes free,
// the newest revision takes it and all revisions before it are SKIPPED without a write. A
// build clones the head of the branch at the time when it starts, so that the newest revision
// contains the commits of all pushes, in any order of their deliveries.
//
// A fork is another repository with another name, and its pushes belong to the fork. A
// repository that is renamed keeps its id. The names under which it was built are noted under
// this id, so a push under a new name finds the deployments that were made with an old name,
// which GitHub still clones. A repository that was renamed before its first push is found when
// its deployment is made again.
package push
