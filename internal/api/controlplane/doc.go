// Package controlplane serves the interface under /v2: deployments and their revisions.
//
// api.gen.go holds the routes and models of infra/openapi/controlplane.yaml; change the document
// and run `make generate`, never the file. Handlers implement StrictServerInterface, one file per
// resource, and return errors of package fault.
package controlplane

//go:generate go tool oapi-codegen -config api.config.yaml ../../../infra/openapi/controlplane.yaml
