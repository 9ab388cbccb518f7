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

// IsHosted reports whether agents are processes of the machine that the functions run on.
func (a *Agents) IsHosted() bool { return a.Get(VariableHost) != "" }

// Target is the place where agents run: the stack's own place, if it has a place, or a
// listener. The agents' tokens are derived from the stack's key, so the first call reads that
// key; if the first call fails, the next call reads it.
func (a *Agents) Target(ctx context.Context) (compute.Target, error) {
	target, err := a.Place(ctx)
	if err != nil {
		return nil, err
	}
	return a.Listeners().Target(target), nil
}

// Place is the stack's own place for agents, nil if it has no place.
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

// Ends reports the agents that have ended, on targets that do not report ends by themselves.
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

// Ended reports the end of the agent of an ecs.TaskStateChange event, if the agent has ended.
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

// Sweep erases the remains of removed releases, on targets that can erase them only later.
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
