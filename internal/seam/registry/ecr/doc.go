// Package ecr is the registry of AWS: a repository of Elastic Container Registry for each
// deployment. It is created when a client first wants to push.
//
// ECR has one token for everything that its caller may do. A client that pushes therefore gets
// the token of a role that may push to such repositories. The role is assumed under a policy
// that names the one repository: the token allows only what both allow. A layer cannot be
// taken from another repository with it, because this needs the right to pull there.
package ecr
