package agents

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	computeremote "github.com/slipway-run/slipway/internal/seam/compute/remote"
)

// Agents makes the adapters. It is safe for concurrent use.
type Agents struct {
	*stack.Stack

	mu     sync.Mutex
	target compute.Target
}

// Of returns the agents of a stack.
func Of(s *stack.Stack) *Agents { return &Agents{Stack: s} }

// IsHosted tells that agents are processes of the machine that the functions run on.
func (a *Agents) IsHosted() bool { return a.Get(VariableHost) != "" }

// Target is where agents run: in the stack's own place, if it has one, or at a listener. Their
// tokens are derived from the stack's key, so the first call reads that, or when it fails the next.
func (a *Agents) Target(ctx context.Context) (compute.Target, error) {
	target, err := a.Place(ctx)
	if err != nil {
		return nil, err
	}
	return a.Listeners().Target(target), nil
}

// Place is the stack's own place for agents, nil where there is none.
func (a *Agents) Place(ctx context.Context) (compute.Target, error) {
	hasher, err := a.Key(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.target != nil || !hasPlace(a.Environment) {
		return a.target, nil
	}
	if a.IsHosted() {
		a.target = computeremote.New(a.Get(VariableHost), a.Get(VariableHostToken), hasher, nil)
		return a.target, nil
	}
	target, err := ecs.New(ecs.Config{
		AWS:                a.AWS,
		Compute:            a.Get(variableCompute),
		NamePrefix:         a.Get(VariableNamePrefix),
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

// Ends tells of the agents that have ended, where agents run that do not tell by themselves.
func (a *Agents) Ends(ctx context.Context) error {
	target, err := a.Place(ctx)
	if err != nil {
		return err
	}
	if host, ok := target.(interface {
		Ends(ctx context.Context, alarm compute.Alarm) error
	}); ok {
		return host.Ends(ctx, a.Deployments().Alarm)
	}
	return nil
}

// Ended tells of the agent that an event of the type ecs.TaskStateChange is about, if it has ended.
func (a *Agents) Ended(ctx context.Context, detail json.RawMessage) error {
	target, err := a.Place(ctx)
	if err != nil {
		return err
	}
	if account, ok := target.(interface {
		Ended(ctx context.Context, detail json.RawMessage, alarm compute.Alarm) error
	}); ok {
		return account.Ended(ctx, detail, a.Deployments().Alarm)
	}
	return nil
}

// Sweep erases what removed releases left behind where that can only be done later.
func (a *Agents) Sweep(ctx context.Context) error {
	target, err := a.Place(ctx)
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
