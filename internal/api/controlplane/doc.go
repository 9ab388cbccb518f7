// Package controlplane serves the control plane: deployments with their revisions, logs and events,
// listeners, integrations, the Auth Service, secrets, webhooks and the workspace. Most paths begin
// with /v2, some with /v1.
//
// api.gen.go holds the routes and models of infra/openapi/controlplane.yaml; change the document
// and run `make generate`, never the file. Handlers implement StrictServerInterface, one file per
// resource, and return errors of package fault.
package controlplane

//go:generate go tool oapi-codegen -config api.config.yaml ../../../infra/openapi/controlplane.yaml
