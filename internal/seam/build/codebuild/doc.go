// Package codebuild is the builder of an AWS account: CodeBuild clones the commit, or downloads the
// tarball that was uploaded, checks the framework configuration file, runs the build command that
// it names, and pushes an image with what that left.
//
// The work is done by a script (build.sh), which travels in the build specification of each
// StartBuild, so that it is always as old as its caller. What the image is to be is said by a
// program (cmd/slipway-recipe), which the script gets from a Lambda layer of the stack: it is too
// large for a specification, and so the Dockerfile is the one that package dockerfile makes on one
// machine too. What the repository is to blame for does not fail the build in CodeBuild's eyes: the
// script ends well and exports a reason and a message, since whether the variables of a failed
// build are kept is not documented. A build that CodeBuild calls failed is the platform's trouble,
// an error here, except that one that took too long is BUILD_TIMEOUT.
//
// CodeBuild cannot be asked for a build by a name of ours, and forgets the token that makes
// StartBuild idempotent after five minutes. So there is an item per build in the table. It is
// written before StartBuild with the token, and completed with the build's id after it. A Start
// that was cut off in between is repeated with the same token and finds the same build. When that
// comes too late, a second build runs, and one of the two fails to push, as tags are immutable. An
// attempt after one that is known to have ended has a tag of its own.
//
// The credentials of a private repository are in one Secrets Manager secret per revision, which is
// deleted when the build ends. CodeBuild hands them to the script as a variable, git asks for them
// through a credential helper, and they are gone before the build command runs. That command is a
// stranger's: it runs as an unprivileged user with an environment of its own, which can reach
// neither the project's role, nor the docker daemon, nor what the script has in memory.
//
// Remove stops the build and deletes its image from the registry. A lifecycle policy of the
// repository could not do that, as it would one day take the image of a release that still runs.
package codebuild

// Actions are what the package needs to be allowed. Tagging is no request of its own, but what
// CreateSecret asks for.
var Actions = []string{
	"codebuild:BatchGetBuilds",
	"codebuild:StartBuild",
	"codebuild:StopBuild",
	"ecr:BatchDeleteImage",
	"secretsmanager:CreateSecret",
	"secretsmanager:DeleteSecret",
	"secretsmanager:PutSecretValue",
	"secretsmanager:TagResource",
}

// ProjectActions are what the role of the CodeBuild project needs for the script, beside what every
// project needs for its logs: pushing to the repository, reading the secrets whose names begin with
// the prefix and "-build-", and reading the layer with the tools and the bucket of uploads. Without
// the right to list what is in that, S3 does not say whether there is something.
var ProjectActions = []string{
	"ecr:BatchCheckLayerAvailability",
	"ecr:CompleteLayerUpload",
	"ecr:GetAuthorizationToken",
	"ecr:InitiateLayerUpload",
	"ecr:PutImage",
	"ecr:UploadLayerPart",
	"lambda:GetLayerVersion",
	"s3:GetObject",
	"s3:ListBucket",
	"secretsmanager:GetSecretValue",
}
