// Package rollouts adds to a stack how agents are built and released, for the functions that do:
// those that only invoke agents need not carry CodeBuild's and ECR's clients, which are large and
// take time to start although nobody calls them.
package rollouts
