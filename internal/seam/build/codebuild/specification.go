package codebuild

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the script
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/codebuild"
	"github.com/aws/aws-sdk-go-v2/service/codebuild/types"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/repository"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

//go:embed build.sh
var script []byte

// Variables that the script sets.
const (
	varCommit       = "SLIPWAY_COMMIT_SHA"
	varImage        = "SLIPWAY_IMAGE"
	varGraphs       = "SLIPWAY_GRAPHS"
	varRecord       = "SLIPWAY_RECORD"
	varDescriptions = "SLIPWAY_DESCRIPTIONS"
	varAuth         = "SLIPWAY_AUTH"
	varSettings     = "SLIPWAY_SETTINGS"
	varReason       = "SLIPWAY_FAILURE_REASON"
	varMessage      = "SLIPWAY_FAILURE_MESSAGE"
)

// varTag is the variable with the tag that the build pushes.
const varTag = "SLIPWAY_IMAGE_TAG"

const varCredentials = "SLIPWAY_GIT_CREDENTIALS"

// specification returns a buildspec. A buildspec is YAML, so it may be JSON.
func specification() (string, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(script); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	putScript := fmt.Sprintf(`echo %s | base64 -d | gunzip > "$SLIPWAY_DIR/build.sh"`, base64.StdEncoding.EncodeToString(packed.Bytes()))
	type phase struct {
		Commands []string `json:"commands"`
	}
	text, err := json.Marshal(map[string]any{
		"version": 0.2,
		"env": map[string]any{
			"shell":              "bash",
			"exported-variables": []string{varCommit, varImage, varGraphs, varDescriptions, varAuth, varSettings, varRecord, varReason, varMessage},
		},
		"phases": map[string]phase{"build": {[]string{
			`mkdir -p "$SLIPWAY_DIR" && chmod 700 "$SLIPWAY_DIR"`, putScript,
			`bash "$SLIPWAY_DIR/build.sh"`, `. "$SLIPWAY_DIR/result"`,
		}}},
	})
	return string(text), err
}

// input returns the request that starts an attempt.
func (b *Builder) input(spec build.Spec, from sources, n note) (*codebuild.StartBuildInput, error) {
	repo := from.repo
	text, err := specification()
	if err != nil {
		return nil, err
	}
	input := &codebuild.StartBuildInput{
		ProjectName:                    aws.String(b.cfg.Project),
		IdempotencyToken:               aws.String(n.token),
		SourceTypeOverride:             types.SourceTypeNoSource,
		BuildspecOverride:              aws.String(text),
		TimeoutInMinutesOverride:       aws.Int32(int32((b.cfg.Timeout + margin).Minutes())),
		QueuedTimeoutInMinutesOverride: aws.Int32(int32(queueLimit.Minutes())),
	}
	if b.cfg.LogGroup != "" {
		input.LogsConfigOverride = &types.LogsConfig{CloudWatchLogs: &types.CloudWatchLogsConfig{
			Status: types.LogsConfigStatusTypeEnabled, GroupName: aws.String(b.cfg.LogGroup), StreamName: aws.String(spec.Revision),
		}}
	}
	for _, v := range [][2]string{
		{"SLIPWAY_TARBALL", from.tarball},
		{"SLIPWAY_TARBALL_LIMIT", strconv.Itoa(upload.MaxSize)},
		{"SLIPWAY_UPLOADED", from.uploaded.UTC().Format(time.RFC3339)},
		{"SLIPWAY_REPOSITORY", repo.URL},
		{"SLIPWAY_REPOSITORY_SCOPE", repo.Scope},
		{"SLIPWAY_PROTOCOLS", repo.Protocols},
		{"SLIPWAY_REF", repository.FullRef(spec.Ref)},
		{"SLIPWAY_COMMIT", spec.Commit},
		{"SLIPWAY_CONFIG_PATH", spec.ConfigPath},
		{"SLIPWAY_WORKSPACE_ID", spec.Workspace},
		{"SLIPWAY_DEPLOYMENT_ID", spec.Deployment},
		{"SLIPWAY_REVISION_ID", spec.Revision},
		{"SLIPWAY_IMAGE_REPOSITORY", b.cfg.ECRRepository},
		{varTag, tagOf(spec.Revision, n.attempt)},
		{"SLIPWAY_INSTALL_COMMAND", spec.InstallCommand},
		{"SLIPWAY_BUILD_COMMAND", spec.BuildCommand},
		{"SLIPWAY_IMAGE_REGISTRY", baseRegistry},
		{"SLIPWAY_BASE_IMAGE", baseImage},
		{"SLIPWAY_TOOLS", b.cfg.Tools},
		{"SLIPWAY_TIMEOUT", strconv.Itoa(int(b.cfg.Timeout.Seconds()))},
		{"SLIPWAY_DIR", "/tmp/slipway"},
		{"SLIPWAY_USER", "65534"}, // nobody: no other process of the build's machine has this user
	} {
		input.EnvironmentVariablesOverride = append(input.EnvironmentVariablesOverride, types.EnvironmentVariable{
			Name: aws.String(v[0]), Value: aws.String(v[1]), Type: types.EnvironmentVariableTypePlaintext,
		})
	}
	if repo.Given() {
		input.EnvironmentVariablesOverride = append(input.EnvironmentVariablesOverride, types.EnvironmentVariable{
			Name: aws.String(varCredentials), Value: aws.String(b.secretName(spec.Revision)), Type: types.EnvironmentVariableTypeSecretsManager,
		})
	}
	return input, nil
}
