// Package repositories makes, from a stack, what clones repositories that are not public and what
// hears of pushes to them. It is apart from package stack because it brings the client of Secrets
// Manager, where the operator keeps the GitHub App, into a function.
package repositories
