// Package openapi holds Slipway's two contracts as OpenAPI 3.1 documents: the control plane and the
// agent server.
//
// The documents are the one place where the interface is written down. Handlers and models are
// generated from them (`go generate ./internal/api/controlplane ./internal/api/agentserver`),
// requests are validated against them (package web), and both servers publish them at
// /openapi.json.
//
// Members whose names begin with "x-" are for the generator and for package web, and are not
// published. In the control plane's document, each operation that takes credentials declares the
// permission that it needs (x-permission). A path declares which of its parameters identifies the
// resource (x-resource): the audit log shows that one when a request is refused.
//
// They are written in YAML and become part of every binary as JSON, which a function that starts
// reads many times faster. `make generate` writes the JSON again after a change of a document.
package openapi

//go:generate go run generate.go controlplane.yaml controlPlane
//go:generate go run generate.go agentserver.yaml agentServer

// ControlPlane is the contract of /v1 and /v2: deployments and their revisions.
var ControlPlane = []byte(controlPlane)

// AgentServer is the contract of a deployed agent's server: threads and runs. Its paths are
// relative to the deployment's URL.
var AgentServer = []byte(agentServer)
