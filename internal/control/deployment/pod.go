package deployment

import (
	"encoding/json"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// pod is the part of a ResourceSpec whose members must fit together, because otherwise
// Kubernetes would refuse it. The shape of each member was checked before.
type pod struct {
	MinScale       *int        `json:"min_scale"`
	MaxScale       *int        `json:"max_scale"`
	Volumes        []named     `json:"volumes"`
	VolumeMounts   []named     `json:"volume_mounts"`
	InitContainers []container `json:"init_containers"`
	Sidecars       []container `json:"sidecars"`
}

type named struct {
	Name string `json:"name"`
}

type container struct {
	named
	Image        string     `json:"image"`
	Env          []variable `json:"env"`
	VolumeMounts []named    `json:"volumeMounts"`
}

type variable struct {
	Value     *string         `json:"value"`
	ValueFrom json.RawMessage `json:"valueFrom"`
}

// decodePod reads a ResourceSpec, which may be missing.
func decodePod(resourceSpec json.RawMessage) (p pod, err error) {
	if len(resourceSpec) > 0 && json.Unmarshal(resourceSpec, &p) != nil {
		err = fault.Shape(fault.Detail{Loc: at(), Msg: "Input could not be read", Type: "value_error"})
	}
	return p, err
}

// check reports members of a ResourceSpec that do not fit together.
func (p pod) check() error {
	c := podCheck{volumes: map[string]bool{}}
	if p.MinScale != nil && p.MaxScale != nil && *p.MinScale > *p.MaxScale {
		c.breaks(at("min_scale"), "Input should be less than or equal to max_scale, which is %d", *p.MaxScale)
	}
	for i, volume := range p.Volumes {
		if c.volumes[volume.Name] {
			c.breaks(at("volumes", i, "name"), "Volume %q is there twice", volume.Name)
		}
		c.volumes[volume.Name] = true
	}
	c.mounts(at("volume_mounts"), p.VolumeMounts)
	c.containers(at("init_containers"), p.InitContainers)
	c.containers(at("sidecars"), p.Sidecars)
	return c.err()
}

// at is the path of a member in a request's ResourceSpec.
func at(members ...any) []any {
	return append([]any{"body", "source_config", "resource_spec"}, members...)
}

type podCheck struct {
	volumes map[string]bool
	broken  []fault.Detail
}

func (c *podCheck) breaks(loc []any, format string, args ...any) {
	c.broken = append(c.broken, fault.Detail{Loc: loc, Msg: fmt.Sprintf(format, args...), Type: "value_error"})
}

func (c *podCheck) err() error {
	if len(c.broken) == 0 {
		return nil
	}
	return fault.Shape(c.broken...)
}

func (c *podCheck) mounts(loc []any, mounts []named) {
	for i, mount := range mounts {
		if !c.volumes[mount.Name] {
			c.breaks(below(loc, i, "name"), "There is no volume %q", mount.Name)
		}
	}
}

func (c *podCheck) containers(loc []any, containers []container) {
	names := map[string]bool{}
	for i, of := range containers {
		if names[of.Name] {
			c.breaks(below(loc, i, "name"), "Container %q is there twice", of.Name)
		}
		names[of.Name] = true
		c.mounts(below(loc, i, "volumeMounts"), of.VolumeMounts)
		for j, v := range of.Env {
			if v.Value != nil && *v.Value != "" && len(v.ValueFrom) > 0 && string(v.ValueFrom) != "null" {
				c.breaks(below(loc, i, "env", j, "valueFrom"), "valueFrom cannot be used when value is not empty")
			}
		}
	}
}

func below(loc []any, members ...any) []any { return append(append([]any{}, loc...), members...) }
