// Package openapi holds Slipway's two contracts as OpenAPI 3.1 documents: the control plane and the agent server.
//
// The documents are the one place where the interface is written down. Handlers and models are generated from them (`go generate
// ./internal/api/controlplane ./internal/api/agentserver`), requests are validated against them (package web), and both servers publish
// them at /openapi.json. Members whose names begin with "x-" speak to the generator; they are not published.
//
// They are written in YAML and become part of every binary as JSON, which a function that starts reads many times faster. After a
// change of a document, `make generate` writes it anew, and with it the page for people, which both servers have at /docs.
package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the pages become part of the binaries that serve them
	"io"
)

//go:generate go run generate.go controlplane.yaml controlPlane
//go:generate go run generate.go agentserver.yaml agentServer
//go:generate go run docs.go docs_schema.go controlplane.yaml
//go:generate go run docs.go docs_schema.go agentserver.yaml

// ControlPlane is the contract of /v1 and /v2: deployments and their revisions.
var ControlPlane = []byte(controlPlane)

// AgentServer is the contract of a deployed agent's server: threads and runs. Its paths are relative to the deployment's URL.
var AgentServer = []byte(agentServer)

// ControlPlaneDocs is the control plane's document as an HTML page, which needs nothing else. [DocsPolicy] goes with it.
func ControlPlaneDocs() []byte { return unpack(controlPlaneDocs) }

// AgentServerDocs is the agent server's document as an HTML page.
func AgentServerDocs() []byte { return unpack(agentServerDocs) }

// The pages are compressed, as they are a twelfth of the size then: of a function, each byte is fetched before it starts.
var (
	//go:embed controlplane.gen.html.gz
	controlPlaneDocs []byte
	//go:embed agentserver.gen.html.gz
	agentServerDocs []byte
)

// unpack panics for what docs.go has not written.
func unpack(packed []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return text
}
