// Package workspacesecret holds the secrets that a workspace keeps once, for any number of
// deployments: each is a name and values under keys. Deployments refer to a value by name and
// key. The values of a release are read when the release is made, so a changed value needs no
// new revision.
//
// The transaction that makes a deployment refer to a secret also writes a note beside the
// secret, which stays until the deployment is erased. A note says "may refer": Config.Referred
// answers whether a deployment still refers to a key. Making a reference increases the
// secret's version. So a request that removes a secret or a key, and read the references
// before this reference was made, reads them again; the removal and the reference never both
// succeed.
//
// Replaced and removed values are kept for one purpose, to hide them in the output that agents
// printed when they had these values. The newest of these values are kept, as many as
// maxFormer and maxFormerSize allow. So a deleted secret stays, without its keys, as long as
// there are deployments that have had its values; it is not visible, and its name is free.
package workspacesecret
