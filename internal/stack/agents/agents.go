package agents

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/build/codebuild"
	buildremote "github.com/slipway-run/slipway/internal/build/remote"
	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/compute/ecs"
	computeremote "github.com/slipway-run/slipway/internal/compute/remote"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/rollout"
	"github.com/slipway-run/slipway/internal/secret"
	"github.com/slipway-run/slipway/internal/stack"
	"github.com/slipway-run/slipway/internal/stack/repositories"
)

// Agents makes the adapters. It is safe for concurrent use.
type Agents struct {
	*stack.Stack

	mu     sync.Mutex
	target compute.Target
	work   *rollout.Rollout
}

// Of returns the agents of a stack.
func Of(s *stack.Stack) *Agents { return &Agents{Stack: s} }

// isHosted tells that agents are processes of the machine that the functions run on.
func (a *Agents) isHosted() bool { return a.Get(variableHost) != "" }

// Target is where agents run: in the stack's own place, if it has one, or at a listener. Their tokens are derived from the stack's key, so the first call reads that, or
// when it fails the next.
func (a *Agents) Target(ctx context.Context) (compute.Target, error) {
	target, err := a.find(ctx)
	if err != nil {
		return nil, err
	}
	return a.Listeners().Target(target), nil
}

// find returns the stack's own place for agents, nil where there is none.
func (a *Agents) find(ctx context.Context) (compute.Target, error) {
	key, err := a.Key(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.targetWith(key)
}

// targetWith returns nil where there is no place for agents.
func (a *Agents) targetWith(hasher secret.Hasher) (compute.Target, error) {
	if a.target != nil || !hasPlace(a.Environment) {
		return a.target, nil
	}
	if a.isHosted() {
		a.target = computeremote.New(a.Get(variableHost), a.Get(variableHostToken), hasher, nil)
		return a.target, nil
	}
	target, err := ecs.New(ecs.Config{
		AWS:                a.AWS,
		Compute:            a.Get(variableCompute),
		NamePrefix:         a.Get(variableNamePrefix),
		Cluster:            a.Get(variableCluster),
		Subnets:            a.List(variableSubnets),
		SecurityGroups:     a.List(variableSecurityGroups),
		ExecutionRole:      a.Get(variableExecutionRole),
		TaskRole:           a.Get(variableTaskRole),
		InfrastructureRole: a.Get(variableInfrastructureRole),
		LogGroup:           a.Get(variableLogGroup),
		Architecture:       strings.ToUpper(a.Get(variableArchitecture)),
		PublicIP:           a.Get(variablePublicIP) == "true",
		VPC:                a.Get(variableVPC),
		ALBListener:        a.Get(variableListener),
		ALBURL:             a.Get(variableALB),
		Hasher:             hasher,
		Now:                clock.System,
	})
	if err != nil {
		return nil, err
	}
	a.target = target
	return target, nil
}

// Rollout performs the steps of rollouts and teardowns.
func (a *Agents) Rollout(ctx context.Context) (*rollout.Rollout, error) {
	key, err := a.Key(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work != nil {
		return a.work, nil
	}
	target, err := a.targetWith(key)
	if err != nil {
		return nil, err
	}
	builder, err := a.builder()
	if err != nil {
		return nil, fmt.Errorf("open builder: %w", err)
	}
	targets := map[revision.Source]compute.Target{}
	if target != nil {
		targets[revision.GitHub] = target
	}
	if target != nil && !a.isHosted() { // a machine's agents are processes, not containers
		targets[revision.ExternalDocker] = target
	}
	integrations, err := repositories.Integrations(a.Stack)
	if err != nil {
		return nil, err
	}
	a.work = rollout.New(rollout.Config{
		Kept:         []rollout.Eraser{a.Crons(), a.Assistants(), a.Memory()},
		Integrations: integrations,
		Deployments:  a.Deployments(), Threads: a.Threads(), Workflow: a.Engine(), Builder: builder, Targets: targets, Logs: kept{},
		Listeners: a.Listeners().Target(nil),
		Hasher:    key, Now: clock.System, Log: a.Log,
	})
	return a.work, nil
}

func (a *Agents) builder() (build.Builder, error) {
	if a.isHosted() {
		return buildremote.New(a.Get(variableHost), a.Get(variableHostToken), nil), nil
	}
	return codebuild.New(codebuild.Config{
		AWS:           a.AWS,
		Table:         a.Table(),
		NamePrefix:    a.Get(variableNamePrefix),
		Project:       a.Get(variableProject),
		LogGroup:      a.Get(variableBuildLogGroup),
		ECRRepository: a.Get(variableRepository),
	})
}

// Sweep erases what removed releases left behind where that can only be done later.
func (a *Agents) Sweep(ctx context.Context) error {
	target, err := a.find(ctx)
	if err != nil {
		return err
	}
	if sweeper, ok := target.(interface {
		Sweep(ctx context.Context) error
	}); ok {
		return sweeper.Sweep(ctx)
	}
	return nil
}

// kept is the rollout.Forgetter of logs that are not this program's to erase: CloudWatch keeps them as long as the log group says.
type kept struct{}

func (kept) Remove(string) error { return nil }
