// Package codebuild is the builder of an AWS account: CodeBuild clones the commit, or
// downloads the tarball that was uploaded, checks the framework configuration file, runs the
// build command that the file names, and pushes an image of the result.
//
// A script (build.sh) does the work. The build specification of each StartBuild contains the
// script, so that the script always has the version of its caller. A program
// (cmd/slipway-recipe) decides how the image is made, so that the Dockerfile is the same that
// package dockerfile makes on one machine. The script gets the program from a Lambda layer of
// the stack, because the program is too large for a specification. A failure that is the
// repository's fault does not fail the build for CodeBuild: the script ends successfully and
// exports a reason and a message, because it is not documented whether CodeBuild keeps the
// variables of a failed build. If CodeBuild reports that a build failed, this is a fault of
// the platform, and an error here. The exceptions are a build that took too long, which is
// BUILD_TIMEOUT, and a build that waited in CodeBuild's queue in vain, which is NO_CAPACITY.
//
// CodeBuild cannot find a build by a name that the platform chose, and after five minutes it
// forgets the token that makes StartBuild idempotent. So the table has an item for each build.
// The builder writes the item with the token before StartBuild, and adds the build's id after
// it. If a Start was cut off in between, the next Start uses the same token and finds the same
// build. If the next Start comes too late, a second build runs, and one of the two builds
// fails to push, because tags are immutable. If an attempt is known to have ended, the next
// attempt has a tag of its own.
//
// A workspace has some slots for builds (Config.Slots), so that its builds do not keep the
// account from building for other workspaces. The table has an item for each slot, with the
// revision whose build has it. A build without a slot is not started: the caller starts it again
// later.
//
// The credentials of a private repository are in one Secrets Manager secret per revision,
// which is deleted when the build ends. CodeBuild hands them to the script as a variable, git
// asks for them through a credential helper, and they are erased before the build command
// runs. The build command comes from a stranger: it runs as an unprivileged user with an
// environment of its own, and it can reach neither the project's role, nor the docker daemon,
// nor the memory of the script.
//
// Remove stops the build and deletes its image from the registry. A lifecycle policy of the
// image repository could not do this, because it would one day delete the image of a release
// that still runs.
package codebuild
