// Package dockerfile says how a repository becomes an image: it makes the Dockerfile, and the files
// that go into the build beside the repository's own. The builder of one machine and CodeBuild
// build the same file.
//
// The Dockerfile needs nothing of its builder but what every Docker engine has, so that the classic
// builder, which can bound a build's memory, takes it too. Its layers are in the order in which
// things change: the platform's runtime, what the repository depends on, the repository, the
// commit's labels. What is installed follows from manifests and lock files alone in most
// repositories (framework.Environment.Manifests, framework.Installation.Manifests); these are
// copied first then, so that a commit that leaves them as they are installs nothing. In the others
// the whole repository is copied first.
//
// The repository's own code runs as the user that the agent will be, never as root, and so does
// what its packages do when they are installed. There are no secrets in an image: neither the
// deployment's, which the agent is given when it starts, nor those of the repository's address.
package dockerfile
