package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
)

const (
	// host and port are the address at which an agent in a container listens.
	host = "0.0.0.0"
	port = "8080"
	// defaultCPU and defaultMemoryMB are the request of a replica whose resource_spec names no
	// amounts. The replica may use twice as much.
	defaultCPU      = 1
	defaultMemoryMB = 2048
	// logSize bounds the part of a container's output that the engine keeps.
	logSize = "10m"
)

var agentPort = network.MustParsePort(port + "/tcp")

// pod describes the replicas of a release.
type pod struct {
	podSpec
	spec compute.Release
	keys keychain
}

// newPod reads a release. It takes the secrets that the engine pulls with out of the agent's
// environment.
func newPod(spec compute.Release) (pod, error) {
	parsed, err := parse(spec.ResourceSpec)
	if err != nil {
		return pod{}, err
	}
	if len(spec.ResourceSpec) == 0 {
		// The image was made from a repository, and the deployment's type says how much it may use.
		parsed.CPULimit, parsed.MemoryLimitMB = spec.Resources.CPU, int64(spec.Resources.MemoryMB)
	}
	configurations := map[string]string{}
	spec.Env = maps.Clone(spec.Env)
	for _, s := range parsed.ImagePullSecrets {
		if text, ok := spec.Env[s.Name]; ok {
			configurations[s.Name] = text
			delete(spec.Env, s.Name)
		}
	}
	keys, err := openKeychain(configurations)
	if err != nil {
		return pod{}, err
	}
	if parsed.CPU <= 0 {
		parsed.CPU = cmp.Or(parsed.CPULimit, defaultCPU)
	}
	if parsed.MemoryMB <= 0 {
		parsed.MemoryMB = cmp.Or(parsed.MemoryLimitMB, defaultMemoryMB)
	}
	if parsed.CPULimit < parsed.CPU {
		parsed.CPULimit = 2 * parsed.CPU
	}
	if parsed.MemoryLimitMB < parsed.MemoryMB {
		parsed.MemoryLimitMB = 2 * parsed.MemoryMB
	}
	return pod{parsed, spec, keys}, nil
}

// labels are the labels of everything that belongs to the release.
func (e *engine) labels(p pod, role string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, p.Annotations)
	maps.Copy(labels, p.Labels)
	maps.Copy(labels, map[string]string{
		labelServer: e.server, labelWorkspace: p.spec.Workspace, labelDeployment: p.spec.Deployment, labelRevision: p.spec.Revision, labelRole: role,
	})
	return labels
}

// agent is the container of the agent itself, published on a free port of the loopback interface.
func (e *engine) agent(p pod, within size, mounts []mount.Mount) client.ContainerCreateOptions {
	withInit := true
	return client.ContainerCreateOptions{
		Config: &container.Config{
			Image: p.spec.Artifact.Image, Cmd: p.spec.Artifact.Start, Env: compute.Entries(p.spec.Environment(host, port)), Labels: e.labels(p, "agent"), ExposedPorts: network.PortSet{agentPort: {}},
		},
		HostConfig: e.confined(&container.HostConfig{
			Init: &withInit, Mounts: mounts, NetworkMode: container.NetworkMode(e.network()),
			PortBindings: network.PortMap{agentPort: {{HostIP: netip.MustParseAddr("127.0.0.1")}}},
			Resources:    within.resources(p.CPU, p.CPULimit, p.MemoryMB<<20, p.MemoryLimitMB<<20),
		}),
	}
}

// beside is an init container or a sidecar.
func (e *engine) beside(p pod, within size, c containerSpec, mounts []mount.Mount, in container.NetworkMode) client.ContainerCreateOptions {
	env := make([]string, len(c.Env))
	for i, v := range c.Env {
		env[i] = v.Name + "=" + v.Value
	}
	user, readOnly := userOf(c.SecurityContext)
	cpu, cpuLimit := amount(c.Resources, "cpu")
	memory, memoryLimit := amount(c.Resources, "memory")
	return client.ContainerCreateOptions{
		Config: &container.Config{
			Image: c.Image, Entrypoint: c.Command, Cmd: c.Args, WorkingDir: c.WorkingDir, Env: env, User: user, Labels: e.labels(p, c.Name),
		},
		HostConfig: e.confined(&container.HostConfig{
			Mounts: mounts, NetworkMode: in, ReadonlyRootfs: readOnly,
			Resources: within.resources(cmp.Or(cpu, defaultCPU), cmp.Or(cpuLimit, 2*defaultCPU), int64(memory), int64(cmp.Or(memoryLimit, 2*memory, defaultMemoryMB<<20))),
		}),
	}
}

// confined takes from a container the powers that an agent does not need, and bounds the
// output that the engine keeps.
func (e *engine) confined(h *container.HostConfig) *container.HostConfig {
	h.SecurityOpt = []string{"no-new-privileges"}
	h.CapDrop = []string{"NET_RAW", "MKNOD", "AUDIT_WRITE"}
	h.LogConfig = container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": logSize, "max-file": "1"}}
	return h
}

// resources are the amounts that a container requests and may use, at most the engine's.
func (s size) resources(cpu, cpuLimit float64, memory, memoryLimit int64) container.Resources {
	if s.memory > 0 {
		memoryLimit = min(memoryLimit, s.memory)
	}
	memory = min(memory, memoryLimit)
	pids := int64(replica.ProcessLimit)
	return container.Resources{
		CPUShares: int64(math.Max(2, cpu*1024)), NanoCPUs: int64(math.Min(cpuLimit, float64(s.cpus)) * 1e9),
		Memory: memoryLimit, MemorySwap: memoryLimit, MemoryReservation: memory, PidsLimit: &pids,
	}
}

func amount(of resourcesSpec, name string) (request, limit float64) {
	request, _ = quantity(of.Requests[name]) // Unsupported has refused unreadable quantities
	limit, _ = quantity(of.Limits[name])
	return request, limit
}

func userOf(context map[string]json.RawMessage) (user string, readOnly bool) {
	text := func(name string) string {
		if !isSet(context[name]) {
			return ""
		}
		return string(context[name])
	}
	if user = text("runAsUser"); user != "" || text("runAsGroup") != "" {
		user = strings.TrimSuffix(cmp.Or(user, "0")+":"+text("runAsGroup"), ":")
	}
	return user, text("readOnlyRootFilesystem") == "true"
}

// volumes makes the replica's volumes. It returns their names at the engine, by their names in
// the specification.
func (e *engine) volumes(ctx context.Context, p pod, replicaName string) (map[string]string, error) {
	labels := map[string]string{}
	for _, v := range p.Volumes {
		dir, err := v.emptyDir()
		if err != nil {
			return labels, fmt.Errorf("volume %s: %w", v.name(), err)
		}
		options := client.VolumeCreateOptions{Name: replicaName + "-" + v.name(), Driver: "local", Labels: e.labels(p, v.name())}
		if dir.Medium != "" {
			options.DriverOpts = map[string]string{"type": "tmpfs", "device": "tmpfs"}
			if bytes, err := quantity(dir.SizeLimit); err == nil {
				options.DriverOpts["o"] = fmt.Sprintf("size=%d", int64(bytes))
			}
		}
		if _, err := e.client.VolumeCreate(ctx, options); err != nil {
			return labels, fmt.Errorf("create volume %s: %w", v.name(), err)
		}
		labels[v.name()] = options.Name
	}
	return labels, nil
}

func mountsOf(specs []mountSpec, volumes map[string]string) []mount.Mount {
	mounts := make([]mount.Mount, len(specs))
	for i, m := range specs {
		mounts[i] = mount.Mount{Type: mount.TypeVolume, Source: volumes[m.Name], Target: m.MountPath, ReadOnly: m.ReadOnly}
	}
	return mounts
}
