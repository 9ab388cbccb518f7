// Package agents adds to a stack where agents are built and where they run: CodeBuild and ECS, or, for functions that run on a developer's machine,
// that machine.
package agents
