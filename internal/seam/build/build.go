// Package build is the seam to the builder, which turns a commit of a git repository, or a tarball
// of sources, into something a compute target can run: package build/local on one machine,
// CodeBuild on AWS.
package build

import "context"

// Spec is what to build. It holds no secrets: the credentials of a private repository are in
// Credentials, which is never logged.
type Spec struct {
	Workspace, Deployment, Revision string
	// Tarball is the path of the upload (package upload) that takes the place of a repository; ""
	// when there is a repository. Its digest takes that of a commit.
	Tarball string
	// RepoURL is any URL that git can clone from: https, ssh, file.
	RepoURL string
	// Credentials are "user:password" for the repository, or "".
	Credentials string
	// Ref is a branch's bare name or a tag's full path (refs/tags/...).
	Ref string
	// Commit is the one to build of those that the repository still has, "" for the one that Ref
	// names.
	Commit string
	// ConfigPath is where the framework configuration file is, from the repository's root.
	ConfigPath string
	// InstallCommand and BuildCommand are for JavaScript repositories: what to run, from the root
	// and from the directory of the configuration file. Without an install command the package
	// manager is the one whose lock file is there; without a build command none is run.
	InstallCommand, BuildCommand string
}

// Artifact is what a target runs. It is stored on the revision as JSON.
type Artifact struct {
	// Dir is the working directory with the built tree (process target).
	Dir string `json:"dir,omitempty"`
	// Start is the argument list that starts the agent.
	Start []string `json:"start,omitempty"`
	// Own are the directories that belong to the revision, Shared those that it has in common with
	// others and only reads (process target).
	Own    []string `json:"own,omitempty"`
	Shared []string `json:"shared,omitempty"`
	// Env is the environment that the framework configuration file asks for.
	Env map[string]string `json:"env,omitempty"`
	// Image is a container image (docker and ecs targets).
	Image string `json:"image,omitempty"`
	// Graphs are the ids of the graphs that the configuration file names.
	Graphs []string `json:"graphs,omitempty"`
	// Descriptions are what the file says of graphs.
	Descriptions map[string]string `json:"descriptions,omitempty"`
	// Auth is the repository's own authentication, "path:variable", "" for none. The agent server
	// asks it about every request.
	Auth string `json:"auth,omitempty"`
	// Settings are what the file asks of the agent server.
	Settings Settings `json:"settings,omitzero"`
}

// State is how far a build is.
type State string

const (
	// Running: not finished.
	Running State = "running"
	// Succeeded: Artifact and CommitSHA are set.
	Succeeded State = "succeeded"
	// Failed: Reason and Message are set.
	Failed State = "failed"
	// Absent: never started here, or lost with the process that did it. Start begins it anew.
	Absent State = "absent"
)

// NoCapacity is the error of a Start that the platform's account has no room for, not even to wait
// in. It passes by itself as other builds end.
type NoCapacity struct {
	// Quota is what the vendor calls it.
	Quota string
}

func (e *NoCapacity) Error() string {
	return "There is no room for the build: the quota " + e.Quota + " of the platform's account is used up."
}

// ReasonNoCapacity: there was no room for the build for hours.
const ReasonNoCapacity = "NO_CAPACITY"

// Result is a builder's report.
type Result struct {
	State     State
	CommitSHA string
	Artifact  Artifact
	// Record is of a build that Succeeded.
	Record Record
	// Reason is a constant for machines, Message a sentence for people with the last output lines
	// of a failed build.
	Reason, Message string
}

// Builder builds revisions. All methods may be called concurrently.
type Builder interface {
	// Start begins the build of a revision and returns as soon as it is accepted. Starting one that
	// still waits for its place only gives it the credentials anew, as those that it was started
	// with may not last until then; starting one that runs or has succeeded does nothing.
	Start(ctx context.Context, spec Spec) error
	// Await returns the build's result. While it is Running, Await waits for its end until ctx ends
	// and then returns Running without an error.
	Await(ctx context.Context, revision string) (Result, error)
	// Remove cancels the build if it still runs and erases what it left. Removing an absent build
	// does nothing.
	Remove(ctx context.Context, revision string) error
}

// Reasons of a Failed build.
const (
	// ReasonRepoUnreachable: the repository could not be reached or does not exist, or the
	// credentials were refused.
	ReasonRepoUnreachable = "REPOSITORY_UNREACHABLE"
	// ReasonRefNotFound: the repository has no such branch or tag.
	ReasonRefNotFound = "REF_NOT_FOUND"
	// ReasonSourceNotFound: nothing was uploaded, or it is not kept any more; ReasonSourceInvalid:
	// what was uploaded is no tarball that can be unpacked; ReasonSourceTooLarge: it is larger than
	// it may be, or what it unpacks to is.
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
	// there.
	ReasonRuntimeMissing = "RUNTIME_MISSING"
	// ReasonOutOfMemory: a command of the build used more memory than it may; ReasonOutOfDisk: the
	// build's files took more disk than they may.
	ReasonOutOfMemory = "OUT_OF_MEMORY"
	ReasonOutOfDisk   = "OUT_OF_DISK"
	// ReasonBuildTimeout: the build took longer than is allowed.
	ReasonBuildTimeout = "BUILD_TIMEOUT"
	// ReasonInternal: a fault of the platform, which its log explains.
	ReasonInternal = "INTERNAL_ERROR"
)
