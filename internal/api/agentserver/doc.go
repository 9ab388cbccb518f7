// Package agentserver serves a deployed agent: its assistants, threads, runs, crons and store, and
// the same agent as tools of the Model Context Protocol (package mcp) and as an agent of
// Agent2Agent (package a2a).
//
// api.gen.go holds the routes and models of infra/openapi/agentserver.yaml; change the document and
// run `make generate`, never the file. Handlers implement StrictServerInterface, one file per
// resource, and return errors of package fault. Endpoints that stream or wait return a response
// object that writes itself (web.Stream, web.Await).
package agentserver

//go:generate go tool oapi-codegen -config api.config.yaml ../../../infra/openapi/agentserver.yaml
