package codebuild

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/codebuild/types"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/registry"
)

// exported returns the variables that the script has set.
func exported(b *types.Build) map[string]string {
	variables := map[string]string{}
	for _, v := range b.ExportedEnvironmentVariables {
		variables[aws.ToString(v.Name)] = aws.ToString(v.Value)
	}
	return variables
}

// resultOf returns the result of a build that has ended. A build that was stopped, that a fault of
// CodeBuild has ended, or that CodeBuild does not know any more, is absent.
func (b *Builder) resultOf(ended *types.Build) (build.Result, error) {
	if ended == nil {
		return build.Result{State: build.Absent}, nil
	}
	variables := exported(ended)
	result := build.Result{State: build.Failed, CommitSHA: variables[varCommit], Reason: variables[varReason]}
	switch {
	case ended.BuildStatus == types.StatusTypeStopped:
		return build.Result{State: build.Absent}, nil
	case slices.ContainsFunc(ended.Phases, timedOutInQueue):
		return noRoom(build.Failed), nil
	case ended.BuildStatus == types.StatusTypeTimedOut:
		result.Reason = build.ReasonBuildTimeout
		result.Message = fmt.Sprintf("the build was stopped after %s.", b.cfg.Timeout+margin)
		return result, nil
	case result.Reason != "":
		result.Message = messageOf(variables[varMessage])
		return result, nil
	case faulted(ended):
		return build.Result{State: build.Absent, Message: fmt.Sprintf("build %s ended as %s: %s", aws.ToString(ended.Id), ended.BuildStatus, phasesOf(ended))}, nil
	case ended.BuildStatus != types.StatusTypeSucceeded:
		return build.Result{}, fmt.Errorf("build %s ended as %s: %s", aws.ToString(ended.Id), ended.BuildStatus, phasesOf(ended))
	}
	result.State = build.Succeeded
	result.Artifact.Image = variables[varImage]
	if err := json.Unmarshal([]byte(variables[varGraphs]), &result.Artifact.Graphs); err != nil || result.Artifact.Image == "" || result.CommitSHA == "" {
		return build.Result{}, fmt.Errorf("build %s has exported no image, commit or graphs", aws.ToString(ended.Id))
	}
	if !registry.In(b.cfg.ECRRepository, result.Artifact.Image) {
		return build.Result{}, fmt.Errorf("build %s has exported the image %s, which is not in %s", aws.ToString(ended.Id), result.Artifact.Image, b.cfg.ECRRepository)
	}
	result.Artifact.Auth = variables[varAuth]
	for name, to := range map[string]any{varDescriptions: &result.Artifact.Descriptions, varSettings: &result.Artifact.Settings, varRecord: &result.Record} {
		text := variables[name]
		if text == "" {
			continue // a build that an earlier version has begun exports fewer variables
		}
		if err := json.Unmarshal([]byte(text), to); err != nil {
			return build.Result{}, fmt.Errorf("build %s has exported a %s that cannot be read: %w", aws.ToString(ended.Id), name, err)
		}
	}
	result.Record.Image = result.Artifact.Image
	return result, nil
}

// noRoom is the result of a build that waits in CodeBuild's queue, or has waited there in vain.
func noRoom(state build.State) build.Result {
	full := &build.NoCapacity{Quota: "builds that run at once in CodeBuild"}
	return build.Result{State: state, Reason: build.ReasonNoCapacity, Message: full.Error()}
}

func timedOutInQueue(phase types.BuildPhase) bool {
	return phase.PhaseType == types.BuildPhaseTypeQueued && phase.PhaseStatus == types.StatusTypeTimedOut
}

// messageOf reads the message, which is JSON because it has several lines.
func messageOf(text string) string {
	var message string
	if json.Unmarshal([]byte(text), &message) != nil {
		return text
	}
	return message
}

// phasesOf names the phases that did not succeed, and the reasons.
func phasesOf(ended *types.Build) string {
	var said []string
	for _, phase := range ended.Phases {
		if phase.PhaseStatus == "" || phase.PhaseStatus == types.StatusTypeSucceeded {
			continue
		}
		for _, c := range phase.Contexts {
			said = append(said, fmt.Sprintf("%s: %s %s", phase.PhaseType, aws.ToString(c.StatusCode), aws.ToString(c.Message)))
		}
	}
	if len(said) == 0 {
		return "CodeBuild does not say why"
	}
	return strings.Join(said, "; ")
}

// faulted reports whether a fault of CodeBuild's host has ended a build.
func faulted(ended *types.Build) bool {
	return ended.BuildStatus == types.StatusTypeFault ||
		slices.ContainsFunc(ended.Phases, func(phase types.BuildPhase) bool { return phase.PhaseStatus == types.StatusTypeFault })
}
