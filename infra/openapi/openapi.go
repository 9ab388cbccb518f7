// Package openapi holds Slipway's two contracts as OpenAPI 3.1 documents: the control plane and the agent server.
//
// The documents are the one place where the interface is written down. Handlers and models are generated from them (`go generate
// ./internal/controlplane ./internal/agentserver`), requests are validated against them (package web), and both servers publish
// them at /openapi.json. Members whose names begin with "x-" speak to the generator; they are not published.
package openapi

import _ "embed" // the documents become part of every binary

// ControlPlane is the contract of /v1 and /v2: deployments and their revisions.
//
//go:embed controlplane.yaml
var ControlPlane []byte

// AgentServer is the contract of a deployed agent's server: threads and runs. Its paths are relative to the deployment's URL.
//
//go:embed agentserver.yaml
var AgentServer []byte
