// Package agents adds to a stack where agents run: ECS or, for functions that run on a developer's
// machine, that machine. Package stack/rollouts adds how they are built and released.
package agents
