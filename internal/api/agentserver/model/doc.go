// Package model has the types of the agent server's interface, and translates the resources of the
// domain into them and names of checkpoints out of them. model.gen.go is generated from
// infra/openapi/agentserver.yaml.
package model

//go:generate go tool oapi-codegen -config config.yaml ../../../../infra/openapi/agentserver.yaml
