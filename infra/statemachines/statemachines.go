// Package statemachines holds the Amazon States Language files that Step Functions and
// workflow/local both execute.
//
// Their Task states use one resource, arn:aws:states:::lambda:invoke, on the functions named by the
// substitutions ${RolloutFunctionArn}, ${RunnerFunctionArn} and ${WebhookFunctionArn}. Inputs and
// results hold ids and step names only, never payloads or secrets.
package statemachines

import "embed"

// Files holds <machine>.asl.json.
//
//go:embed *.asl.json
var Files embed.FS
