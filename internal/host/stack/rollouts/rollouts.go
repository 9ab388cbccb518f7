// Package rollouts adds to a stack how agents are built and released, for the functions that do
// this: functions that only invoke agents need not contain CodeBuild's and ECR's clients, which
// are large and take time to start even if they are not used.
package rollouts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/host/stack/images"
	"github.com/slipway-run/slipway/internal/host/stack/repositories"
	"github.com/slipway-run/slipway/internal/host/stack/uploads"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/codebuild"
	buildremote "github.com/slipway-run/slipway/internal/seam/build/remote"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Names of the variables.
const (
	variableProject         = "SLIPWAY_CODEBUILD_PROJECT"
	variableWorkspaceBuilds = "SLIPWAY_WORKSPACE_BUILDS"
	variableBuildTools      = "SLIPWAY_BUILD_TOOLS"
	variableBuildLogGroup   = "SLIPWAY_CODEBUILD_LOG_GROUP"
	variableRepository      = "SLIPWAY_ECR_REPOSITORY"
)

// Need names the needs of functions that build and release agents.
func Need(env stack.Environment) []string {
	if env.IsHosted() {
		return nil
	}
	return slices.Concat([]string{agents.VariableNamePrefix, variableProject, variableWorkspaceBuilds, variableRepository, variableBuildTools}, images.Need(env), uploads.Need(env), agents.NeedOwnTarget(env))
}

// Rollouts makes the adapters. It is safe for concurrent use.
type Rollouts struct {
	*agents.Agents

	mu   sync.Mutex
	work *rollout.Rollout
}

// Of returns the rollouts of a stack.
func Of(s *stack.Stack) *Rollouts { return &Rollouts{Agents: agents.Of(s)} }

// Rollout performs the steps of rollouts, restarts and teardowns.
func (r *Rollouts) Rollout(ctx context.Context) (*rollout.Rollout, error) {
	key, err := r.Key(ctx)
	if err != nil {
		return nil, err
	}
	target, err := r.OwnTarget(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work != nil {
		return r.work, nil
	}
	builder, err := r.builder()
	if err != nil {
		return nil, fmt.Errorf("open builder: %w", err)
	}
	targets := map[revision.Source]compute.Target{}
	if target != nil {
		targets[revision.GitHub], targets[revision.InternalSource] = target, target
	}
	if target != nil && !r.IsHosted() { // a machine's agents are processes, not containers
		targets[revision.ExternalDocker], targets[revision.InternalDocker] = target, target
	}
	integrations, err := repositories.Integrations(r.Stack)
	if err != nil {
		return nil, err
	}
	uploaded := uploads.Of(r.Stack)
	keeps := []rollout.Eraser{r.Crons(), r.Assistants(), run.PermitEraser{Table: r.Table()}, uploaded}
	pushed, err := images.Of(r.Stack)
	if err != nil {
		return nil, err
	}
	if pushed != nil {
		keeps = append(keeps, pushed)
	}
	r.work = rollout.New(rollout.Config{
		Kept:         keeps,
		Items:        r.Store(),
		Images:       pushed,
		Uploads:      uploaded,
		Integrations: integrations,
		Deployments:  r.Deployments(), Threads: r.Threads(), Workflow: r.Engine(), Builder: builder, Targets: targets, Logs: noForgetter{},
		Listeners: r.Listeners().Target(nil),
		Hasher:    key, Now: clock.System, Log: r.Log,
	})
	return r.work, nil
}

func (r *Rollouts) builder() (build.Builder, error) {
	if r.IsHosted() {
		return buildremote.New(r.Get(stack.VariableHost), r.Get(stack.VariableHostToken), nil), nil
	}
	slots, err := strconv.Atoi(r.Get(variableWorkspaceBuilds))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variableWorkspaceBuilds, err)
	}
	return codebuild.New(codebuild.Config{
		AWS:           r.AWS,
		Table:         r.Table(),
		NamePrefix:    r.Get(agents.VariableNamePrefix),
		Project:       r.Get(variableProject),
		Slots:         slots,
		LogGroup:      r.Get(variableBuildLogGroup),
		ECRRepository: r.Get(variableRepository),
		Tools:         r.Get(variableBuildTools),
		Uploads:       uploads.Bucket(r.Stack),
	})
}

// noForgetter is the rollout.Forgetter of logs that this program may not erase: CloudWatch keeps
// them for the time that the log group says.
type noForgetter struct{}

func (noForgetter) Remove(string) error { return nil }
