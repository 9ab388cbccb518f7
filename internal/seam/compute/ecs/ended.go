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

// TaskStateChange is the detail-type of EventBridge's events about the state of tasks.
const TaskStateChange = "ECS Task State Change"

// lateEnd is the largest age of an end that still raises the alarm. An agent that ended
// earlier either runs again by now, or has ended once more.
const lateEnd = 5 * time.Minute

// taskEnd is the description of a task in the detail of an event.
type taskEnd struct {
	Group, LastStatus, StoppedReason, TaskDefinitionArn string
	StopCode                                            types.TaskStopCode
	StoppedAt                                           time.Time
	Containers                                          []struct {
		ExitCode *int32
		Reason   string
	}
}

// Ended raises the alarm if the detail of an event of the type TaskStateChange says that a
// replica has ended by itself. It raises no alarm for a task that ECS ended because it wanted
// fewer, or for a task that a restart tries. An event may come more than once, and late. Ended
// ignores an event of a task that does not belong to the stack's releases.
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

// tried reports whether the task belonged to a restart that has not replaced the serving
// tasks, or that was taken back. The end of such a task is reported as the end of the restart,
// and says nothing about the release. The task definition of such a task is later than the
// task definition of the serving tasks.
func (e taskEnd) tried(service *types.Service) bool {
	serving := aws.ToString(service.TaskDefinition)
	if before := replaced(service, primaryOf(service)); before != nil {
		serving = aws.ToString(before.TaskDefinition)
	}
	return numberOf(e.TaskDefinitionArn) > numberOf(serving)
}

// numberOf is the number of a task definition within its family. The ARN ends with it.
func numberOf(definition string) int {
	number, err := strconv.Atoi(definition[strings.LastIndexByte(definition, ':')+1:])
	if err != nil {
		return 0
	}
	return number
}

// ownerOf returns the release with the workspace and the deployment from the tags of its
// service.
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

// status is the status of the release because of the end, nil if the end says nothing about
// the release. The error is for trouble that the platform causes.
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
