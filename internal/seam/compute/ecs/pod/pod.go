// Package pod says which parts of an interface's ResourceSpec a task on ECS has. It is apart
// from package ecs, so that functions which take deployments do not link the SDKs of functions
// that run them.
package pod

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// LabelPrefix begins the names of the platform's own labels.
	LabelPrefix = "slipway."
	// maxLabels is the largest size, in bytes, of labels and annotations together.
	maxLabels = 16 << 10
	// maxDefinition is the largest size of what a deployment adds to its task definition, which may
	// have 64 KiB: the labels, and each variable. The rest is for the platform's settings and for
	// the variables of the repository's own file.
	maxDefinition = 56 << 10
	// variableSize is the size of a variable in a task definition without its name, which is there
	// twice. It has no value there, but the ARN of the release's secret.
	variableSize = 160
)

// spec is the part of the interface's ResourceSpec that describes a replica.
type spec struct {
	Labels           map[string]string `json:"labels"`
	Annotations      map[string]string `json:"annotations"`
	ServiceAccount   string            `json:"service_account_name"`
	ImagePullSecrets []json.RawMessage `json:"image_pull_secrets"`
	Volumes          []json.RawMessage `json:"volumes"`
	VolumeMounts     []json.RawMessage `json:"volume_mounts"`
	InitContainers   []json.RawMessage `json:"init_containers"`
	Sidecars         []json.RawMessage `json:"sidecars"`
}

func parse(resourceSpec json.RawMessage) (spec, error) {
	var parsed spec
	if len(resourceSpec) == 0 {
		return parsed, nil
	}
	if err := json.Unmarshal(resourceSpec, &parsed); err != nil {
		return spec{}, fmt.Errorf("decode resource_spec: %w", err)
	}
	return parsed, nil
}

// Labels are the labels that the agent's container gets. A container can have labels only, so
// annotations become labels.
func Labels(resourceSpec json.RawMessage) (map[string]string, error) {
	resources, err := parse(resourceSpec)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	maps.Copy(labels, resources.Annotations)
	maps.Copy(labels, resources.Labels)
	return labels, nil
}

// Unsupported says, in sentences that name the field, which parts of a ResourceSpec a task on
// ECS cannot have, and whether it cannot have so many variables, whose names are given. It leaves
// out parts that have no meaning here: the sizes of queue workers and databases.
func Unsupported(resourceSpec json.RawMessage, variables []string) []string {
	resources, err := parse(resourceSpec)
	if err != nil {
		return []string{"source_config.resource_spec cannot be read."}
	}
	var broken []string
	breaks := func(is bool, field, why string) {
		if is {
			broken = append(broken, fmt.Sprintf("source_config.resource_spec.%s cannot be had on ECS: %s.", field, why))
		}
	}
	breaks(resources.ServiceAccount != "", "service_account_name", "there are no Kubernetes service accounts")
	breaks(len(resources.ImagePullSecrets) > 0, "image_pull_secrets", "images are pulled with what the platform's own role may")
	breaks(len(resources.Volumes) > 0, "volumes", "the agent's container has no volumes")
	breaks(len(resources.VolumeMounts) > 0, "volume_mounts", "the agent's container has no volumes")
	breaks(len(resources.InitContainers) > 0, "init_containers", "a replica is the agent's container alone")
	breaks(len(resources.Sidecars) > 0, "sidecars", "a replica is the agent's container alone")
	size := 0
	for _, labels := range []struct {
		field string
		given map[string]string
	}{{"labels", resources.Labels}, {"annotations", resources.Annotations}} {
		for _, name := range slices.Sorted(maps.Keys(labels.given)) {
			size += len(name) + len(labels.given[name])
			breaks(strings.HasPrefix(name, LabelPrefix), labels.field, fmt.Sprintf("%q is the platform's, as all names that begin with %s", name, LabelPrefix))
		}
	}
	breaks(size > maxLabels, "labels", fmt.Sprintf("with annotations they may have %d bytes, and have %d", maxLabels, size))
	for _, name := range variables {
		size += variableSize + 2*len(name)
	}
	if size > maxDefinition {
		broken = append(broken, fmt.Sprintf("secrets and secret_references cannot be had on ECS: with labels and annotations, a task definition has %d bytes for them, of which each takes %d and "+
			"twice its name; these %d take %d.", maxDefinition, variableSize, len(variables), size))
	}
	return broken
}
