// Package agents adds to a stack the place where agents run: ECS or, for functions that run on
// a developer's machine, that machine. Package stack/rollouts adds how agents are built and
// released.
package agents
