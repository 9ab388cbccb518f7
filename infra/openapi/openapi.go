// Package openapi holds Slipway's two contracts as OpenAPI 3.1 documents: the control plane and the agent server.
//
// The documents are the one place where the interface is written down. Handlers and models are generated from them (`go generate
// ./internal/controlplane ./internal/agentserver`), requests are validated against them (package web), and both servers publish
// them at /openapi.json. Members whose names begin with "x-" speak to the generator; they are not published.
//
// They are written in YAML and become part of every binary as JSON, which a function that starts reads many times faster. After a
// change of a document, `make generate` writes it anew, and with it the page for people, which both servers have at /docs.
package openapi

import _ "embed" // the pages become part of the binaries that serve them

//go:generate go run generate.go controlplane.yaml controlPlane
//go:generate go run generate.go agentserver.yaml agentServer
//go:generate go run docs.go docs_schema.go controlplane.yaml
//go:generate go run docs.go docs_schema.go agentserver.yaml

// ControlPlane is the contract of /v1 and /v2: deployments and their revisions.
var ControlPlane = []byte(controlPlane)

// AgentServer is the contract of a deployed agent's server: threads and runs. Its paths are relative to the deployment's URL.
var AgentServer = []byte(agentServer)

// ControlPlaneDocs is the control plane's document as an HTML page, which needs nothing else. [DocsPolicy] goes with it.
//
//go:embed controlplane.gen.html
var ControlPlaneDocs []byte

// AgentServerDocs is the agent server's document as an HTML page.
//
//go:embed agentserver.gen.html
var AgentServerDocs []byte
