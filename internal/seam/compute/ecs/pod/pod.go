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
	// maxLabels is the largest size, in bytes, of labels and annotations together. A task
	// definition may have 64 KiB, and the names of variables need a part of them too.
	maxLabels = 16 << 10
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
// ECS cannot have. It does not look at the deployment's secrets. It leaves out parts that have no
// meaning here: the sizes of queue workers and databases.
func Unsupported(resourceSpec json.RawMessage, _ []string) []string {
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
	return broken
}
