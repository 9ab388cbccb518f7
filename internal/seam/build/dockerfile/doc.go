// Package dockerfile says how a repository becomes an image: it makes the Dockerfile, and the
// other files that the build needs beside the repository's own files. The builder of one
// machine and CodeBuild build the same Dockerfile.
//
// The Dockerfile uses only features that every Docker engine has. So the classic builder,
// which can bound a build's memory, accepts it too. The layers are in the order of how often
// they change: the platform's runtime, the dependencies of the repository, the repository, the
// commit's labels. In most repositories the manifests and lock files alone determine the
// packages to install (framework.Environment.Manifests, framework.Installation.Manifests).
// Then these files are copied first, so that a commit that does not change them installs
// nothing. In other repositories the whole repository is copied first.
//
// The repository's own code runs as the agent's user. The same is true for the code that its
// packages run when they are installed. Only the instructions of dockerfile_lines run as root of
// the build's container, before anything of the repository is there. An image contains no secrets:
// neither the secrets of the deployment, which the agent gets when it starts, nor the secrets in
// the repository's address.
package dockerfile
