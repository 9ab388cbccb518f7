// Package repositories makes, from a stack, the services that clone private repositories and
// that receive their pushes. It is apart from package stack because it brings the client of
// Secrets Manager, where the operator keeps the GitHub App, into a function.
package repositories
