// Package ecr is the registry of AWS: a repository of Elastic Container Registry for each
// deployment, which is made when a client first wants to push.
//
// ECR has one token for all that its caller may do. Who pushes is therefore given that of a role
// that may push to such repositories, assumed under a policy that names the one repository: the
// token reaches as far as both allow. A layer cannot be taken from another repository with it,
// because that takes the right to pull there.
package ecr
