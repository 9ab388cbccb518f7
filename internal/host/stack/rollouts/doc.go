// Package rollouts adds to a stack how agents are built and released, for the functions that do
// this: functions that only invoke agents need not contain CodeBuild's and ECR's clients, which
// are large and take time to start even if they are not used.
package rollouts
