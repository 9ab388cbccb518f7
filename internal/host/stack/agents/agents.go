// Package agents adds to a stack the place where agents run: ECS or, for functions that run on
// a developer's machine, that machine. Package stack/rollouts adds how agents are built and
// released.
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

	mu sync.Mutex
	// target is host or account, whichever OwnTarget has made, and nil before.
	target  compute.Target
	host    *computeremote.Target
	account *ecs.Target
}

// Of returns the agents of a stack.
func Of(s *stack.Stack) *Agents { return &Agents{Stack: s} }

// Target is the place where agents run: the stack's own place, if it has a place, or a
// listener. The agents' tokens are derived from the stack's key, so the first call reads that
// key; if the first call fails, the next call reads it.
func (a *Agents) Target(ctx context.Context) (compute.Target, error) {
	target, err := a.OwnTarget(ctx)
	if err != nil {
		return nil, err
	}
	return a.Listeners().Target(target), nil
}

// OwnTarget is the stack's own target for agents, nil without such a target.
func (a *Agents) OwnTarget(ctx context.Context) (compute.Target, error) {
	hasher, err := a.Key(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.target != nil || !hasOwnTarget(a.Environment) {
		return a.target, nil
	}
	if a.IsHosted() {
		a.host = computeremote.New(a.Get(stack.VariableHost), a.Get(stack.VariableHostToken), hasher, nil)
		a.target = a.host
		return a.target, nil
	}
	account, err := ecs.New(ecs.Config{
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
	a.account, a.target = account, account
	return account, nil
}

// CollectHostExits reports the agents that have ended on the machine of the functions, which does
// not report ends by itself.
func (a *Agents) CollectHostExits(ctx context.Context) error {
	if _, err := a.OwnTarget(ctx); err != nil || a.host == nil {
		return err
	}
	return a.host.Ends(ctx, a.Deployments().Alarm)
}

// HandleTaskStopped reports the end of the agent of an ecs.TaskStateChange event, if the agent has
// ended.
func (a *Agents) HandleTaskStopped(ctx context.Context, detail json.RawMessage) error {
	if _, err := a.OwnTarget(ctx); err != nil || a.account == nil {
		return err
	}
	return a.account.Ended(ctx, detail, a.Deployments().Alarm)
}

// Sweep erases the remains of removed releases in an account, which can be erased only later.
func (a *Agents) Sweep(ctx context.Context) error {
	if _, err := a.OwnTarget(ctx); err != nil || a.account == nil {
		return err
	}
	return a.account.Sweep(ctx)
}
