// Package agentserver serves a deployed agent: its assistants, threads, runs, crons and store, and
// the same agent as tools of the Model Context Protocol (package mcp) and as an agent of
// Agent2Agent (package a2a).
//
// api.gen.go holds the routes of infra/openapi/agentserver.yaml, and package model its types with
// their translations; change the document and run `make generate`, never the generated files.
// Handlers implement StrictServerInterface and return errors of package fault. Endpoints that
// stream or wait return a response object that writes itself (web.Stream, web.Await).
//
// Start with routes.go: Config, and the way of a request to its deployment, its sender (caller.go)
// and its handler. These files follow:
//
//   - the handlers of a resource: assistant.go, thread.go, state.go, run.go, cron.go, store.go;
//   - the events of a run (stream.go) and of a thread (threadstream.go: stream modes;
//     threadevents.go: the thread-centric protocol, whose commands are in commands.go);
//   - messages of JSON-RPC, for packages mcp and a2a: jsonrpc.go;
//   - what a repository replaces: its authentication (own.go, then owndecision.go and package
//     access), its HTTP application (ownroutes.go), its encryption (encrypt.go).
package agentserver

//go:generate go tool oapi-codegen -config api.config.yaml ../../../infra/openapi/agentserver.yaml
