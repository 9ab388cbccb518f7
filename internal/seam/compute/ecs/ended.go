package ecs

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// TaskStateChange is the detail-type of EventBridge's events that tell how tasks are.
const TaskStateChange = "ECS Task State Change"

// lateEnd is how old an end may be that is still told. Whatever ended before either runs again
// since, or has ended once more.
const lateEnd = 5 * time.Minute

// taskEnd is what the detail of an event tells of a task.
type taskEnd struct {
	Group, LastStatus, StoppedReason, TaskDefinitionArn string
	StopCode                                            types.TaskStopCode
	StoppedAt                                           time.Time
	Containers                                          []struct {
		ExitCode *int32
		Reason   string
	}
}

// Ended raises the alarm when the detail of an event of the type TaskStateChange tells that a
// replica has ended by itself, and not since ECS wanted fewer, nor as what a restart tries. An
// event may come more than once, and late. One of a task that is not of the stack's releases is
// none of ours.
func (t *Target) Ended(ctx context.Context, detail json.RawMessage, alarm compute.Alarm) error {
	var end taskEnd
	if err := json.Unmarshal(detail, &end); err != nil {
		return fmt.Errorf("read the end of a task: %w", err)
	}
	revision, ours := strings.CutPrefix(end.Group, "service:"+t.names.prefix+"-")
	ref := compute.Ref{Revision: revision}
	if !ours || !id.Valid(revision) || end.LastStatus != string(types.DesiredStatusStopped) || t.cfg.Now().Sub(end.StoppedAt) > lateEnd {
		return nil
	}
	status, err := end.status()
	if err != nil {
		return fmt.Errorf("release %s: a task could not be started: %w", revision, err)
	}
	if status == nil {
		return nil
	}
	service, err := t.describe(ctx, ref)
	if err != nil {
		return fmt.Errorf("release %s: a task has ended: %w", revision, err)
	}
	if service == nil || aws.ToString(service.Status) == draining {
		return nil // it was removed
	}
	if end.tried(service) {
		return nil
	}
	if ref, err = ownerOf(service, ref); err == nil {
		alarm(ctx, ref, *status)
	}
	return err
}

// tried tells whether the task was of a restart that has not taken the place of what serves, or was
// taken back: that it ends is told as the restart's end, and says nothing of the release. Its task
// definition is a later one than that of the tasks that serve.
func (e taskEnd) tried(service *types.Service) bool {
	serving := aws.ToString(service.TaskDefinition)
	if before := replaced(service, primaryOf(service)); before != nil {
		serving = aws.ToString(before.TaskDefinition)
	}
	return numberOf(e.TaskDefinitionArn) > numberOf(serving)
}

// numberOf is the number of a task definition among those of its family, which its ARN ends with.
func numberOf(definition string) int {
	number, err := strconv.Atoi(definition[strings.LastIndexByte(definition, ':')+1:])
	if err != nil {
		return 0
	}
	return number
}

// ownerOf returns the release with the workspace and the deployment that its service's tags name.
func ownerOf(service *types.Service, ref compute.Ref) (compute.Ref, error) {
	for _, tag := range service.Tags {
		switch aws.ToString(tag.Key) {
		case tagWorkspace:
			ref.Workspace = aws.ToString(tag.Value)
		case tagDeployment:
			ref.Deployment = aws.ToString(tag.Value)
		}
	}
	if ref.Workspace == "" || ref.Deployment == "" {
		return ref, fmt.Errorf("release %s: its service has no tags that say whose it is", ref.Revision)
	}
	return ref, nil
}

// status is what an end means for the release, nil when nothing. The error is for what the platform
// is to blame for.
func (e taskEnd) status() (*compute.Status, error) {
	task := types.Task{StopCode: e.StopCode, StoppedReason: aws.String(e.StoppedReason)}
	for _, c := range e.Containers {
		task.Containers = append(task.Containers, types.Container{ExitCode: c.ExitCode, Reason: aws.String(c.Reason)})
	}
	status, err := taskFailure(task)
	if status == nil {
		return nil, err
	}
	status.State = compute.Progressing
	switch {
	case says(status.Message, []string{"outofmemoryerror"}):
		status.Reason = compute.ReasonOutOfMemory
	case e.StopCode == types.TaskStopCodeEssentialContainerExited:
		status.Reason = compute.ReasonEnded
	}
	return status, nil
}
