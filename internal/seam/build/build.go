// Package build is the seam to the builder, which turns a commit of a git repository, or a
// tarball of sources, into an artifact that a compute target can run. The builder is package
// build/local on one machine, and CodeBuild on AWS.
package build

import (
	"context"
	"fmt"
)

// Spec describes the build of a revision. It holds no secrets: the credentials of a private
// repository are in Credentials, which is never logged.
type Spec struct {
	Workspace, Deployment, Revision string
	// Tarball is the path of the upload (package upload) that is built in place of a
	// repository; "" if there is a repository. The digest of the tarball takes the place of
	// the commit.
	Tarball string
	// RepoURL is any URL that git can clone from: https, ssh, file.
	RepoURL string
	// Credentials are "user:password" for the repository, or "".
	Credentials string
	// Ref is a branch's bare name or a tag's full path (refs/tags/...).
	Ref string
	// Commit is the commit to build, which the repository must still have; "" for the commit
	// that Ref names.
	Commit string
	// ConfigPath is the path of the framework configuration file, relative to the repository's
	// root.
	ConfigPath string
	// InstallCommand and BuildCommand are for JavaScript repositories. The install command
	// runs in the root, the build command in the directory of the configuration file. Without
	// an install command the builder uses the package manager whose lock file is there.
	// Without a build command the builder runs no build command.
	InstallCommand, BuildCommand string
}

// Artifact is the result of a build, which a target runs. It is stored on the revision as
// JSON.
type Artifact struct {
	// Dir is the working directory with the built tree (process target).
	Dir string `json:"dir,omitempty"`
	// Start is the argument list that starts the agent.
	Start []string `json:"start,omitempty"`
	// Own are the directories that belong to the revision. Shared are the directories that the
	// revision has in common with other revisions and only reads (process target).
	Own    []string `json:"own,omitempty"`
	Shared []string `json:"shared,omitempty"`
	// Env is the environment that the framework configuration file asks for.
	Env map[string]string `json:"env,omitempty"`
	// Image is a container image (docker and ecs targets).
	Image string `json:"image,omitempty"`
	// Graphs are the ids of the graphs that the configuration file names.
	Graphs []string `json:"graphs,omitempty"`
	// Descriptions are the descriptions of graphs in the configuration file, by the graphs'
	// ids.
	Descriptions map[string]string `json:"descriptions,omitempty"`
	// Auth is the repository's own authentication, "path:variable", or "" if the repository
	// has no authentication of its own. The agent server asks it about every request.
	Auth string `json:"auth,omitempty"`
	// Encryption is the repository's own encryption, "path:variable", or "" if the repository has
	// no encryption of its own. It encrypts what the agent server stores of the deployment.
	Encryption string `json:"encryption,omitempty"`
	// Settings are the settings of the agent server that the configuration file asks for.
	Settings Settings `json:"settings,omitzero"`
}

// State is the progress of a build.
type State string

const (
	// Running: not finished. Reason and Message are set while the build waits for room.
	Running State = "running"
	// Succeeded: Artifact and CommitSHA are set.
	Succeeded State = "succeeded"
	// Failed: Reason and Message are set.
	Failed State = "failed"
	// Absent: the build was never started here, or it was lost with the process that ran it.
	// Start begins the build again. Message says why it was lost, where that is known.
	Absent State = "absent"
)

// NoCapacity is the error of Start if there is no room for the build now: the platform's account
// has none, not even in the queue, or the workspace has its share of it. The condition passes by
// itself when other builds end.
type NoCapacity struct {
	// Quota is the vendor's name for the quota that is used up.
	Quota string
	// Share is how many builds the workspace may have at once, if it has as many; otherwise 0.
	Share int
}

func (e *NoCapacity) Error() string {
	if e.Share > 0 {
		return fmt.Sprintf("The build waits for other builds of the workspace: at most %d of them run or wait in the platform's account at once.", e.Share)
	}
	return "There is no room for the build: the quota " + e.Quota + " of the platform's account is used up."
}

// ReasonNoCapacity: there is no room for the build, or there was none for hours.
const ReasonNoCapacity = "NO_CAPACITY"

// Result is a builder's report.
type Result struct {
	State     State    `json:"state"`
	CommitSHA string   `json:"commit_sha,omitempty"`
	Artifact  Artifact `json:"artifact"`
	// Record is the record of a build that Succeeded.
	Record Record `json:"record"`
	// Reason is a constant for programs. Message is a sentence for people, with the last
	// output lines of a failed build.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Builder builds revisions. All methods may be called concurrently.
type Builder interface {
	// Start begins the build of a revision and returns as soon as the build is accepted. If
	// the build still waits for its place, Start only gives it the credentials again, because
	// the credentials that it was started with may expire before it runs. If the build runs or
	// has succeeded, Start does nothing.
	Start(ctx context.Context, spec Spec) error
	// Await returns the build's result. While the build is Running, Await waits for the end of
	// the build. If ctx ends first, Await returns Running without an error, and ReasonNoCapacity
	// if the build waits for room in the platform's account.
	Await(ctx context.Context, revision string) (Result, error)
	// Remove cancels the build if it still runs, and erases everything that it left. If the
	// build is absent, Remove does nothing.
	Remove(ctx context.Context, revision string) error
}

// Reasons of a Failed build.
const (
	// ReasonRepoUnreachable: the repository could not be reached or does not exist, or the
	// credentials were refused.
	ReasonRepoUnreachable = "REPOSITORY_UNREACHABLE"
	// ReasonRefNotFound: the repository has no such branch or tag.
	ReasonRefNotFound = "REF_NOT_FOUND"
	// ReasonSourceNotFound: nothing was uploaded, or the upload is not kept any more.
	// ReasonSourceInvalid: the upload is not a tarball that can be unpacked, or the upload or the
	// commit has paths that no build can have, or the commit has files in Git LFS.
	// ReasonSourceTooLarge: the upload, or its unpacked content, is larger than the limit.
	ReasonSourceNotFound = "SOURCE_NOT_FOUND"
	ReasonSourceInvalid  = "SOURCE_INVALID"
	ReasonSourceTooLarge = "SOURCE_TOO_LARGE"
	// ReasonConfigNotFound: there is no framework configuration file at the path.
	ReasonConfigNotFound = "CONFIG_NOT_FOUND"
	// ReasonConfigInvalid: the framework configuration file cannot be used as it is.
	ReasonConfigInvalid = "CONFIG_INVALID"
	// ReasonBuildCommandFailed: the build command ended with an error.
	ReasonBuildCommandFailed = "BUILD_COMMAND_FAILED"
	// ReasonDependenciesFailed: the repository's dependencies could not be resolved or installed.
	ReasonDependenciesFailed = "DEPENDENCIES_FAILED"
	// ReasonRuntimeMissing: the language, or its version, that the repository asks for is not
	// available.
	ReasonRuntimeMissing = "RUNTIME_MISSING"
	// ReasonOutOfMemory: a command of the build used more memory than the limit.
	// ReasonOutOfDisk: the build's files took more disk space than the limit.
	ReasonOutOfMemory = "OUT_OF_MEMORY"
	ReasonOutOfDisk   = "OUT_OF_DISK"
	// ReasonOutOfSockets: the build held more sockets than the limit.
	ReasonOutOfSockets = "OUT_OF_SOCKETS"
	// ReasonBuildTimeout: the build took longer than is allowed.
	ReasonBuildTimeout = "BUILD_TIMEOUT"
	// ReasonInternal: a fault of the platform, which its log explains.
	ReasonInternal = "INTERNAL_ERROR"
)
