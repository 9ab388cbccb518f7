package docker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// podSpec is the part of the interface's ResourceSpec that describes a replica. Parts that are
// free-form in the interface are kept as they are.
type podSpec struct {
	CPU              float64           `json:"cpu"`
	CPULimit         float64           `json:"cpu_limit"`
	MemoryMB         int64             `json:"memory_mb"`
	MemoryLimitMB    int64             `json:"memory_limit_mb"`
	Labels           map[string]string `json:"labels"`
	Annotations      map[string]string `json:"annotations"`
	ServiceAccount   string            `json:"service_account_name"`
	ImagePullSecrets []struct {
		Name string `json:"name"`
	} `json:"image_pull_secrets"`
	Volumes        []volumeSpec    `json:"volumes"`
	VolumeMounts   []mountSpec     `json:"volume_mounts"`
	InitContainers []containerSpec `json:"init_containers"`
	Sidecars       []containerSpec `json:"sidecars"`
}

// volumeSpec is a Volume: its name, and its source as the only other member that is set.
type volumeSpec map[string]json.RawMessage

type mountSpec struct {
	Name             string `json:"name"`
	MountPath        string `json:"mountPath"`
	SubPath          string `json:"subPath"`
	SubPathExpr      string `json:"subPathExpr"`
	MountPropagation string `json:"mountPropagation"`
	ReadOnly         bool   `json:"readOnly"`
}

type containerSpec struct {
	Name            string                     `json:"name"`
	Image           string                     `json:"image"`
	ImagePullPolicy string                     `json:"imagePullPolicy"`
	Command         []string                   `json:"command"`
	Args            []string                   `json:"args"`
	WorkingDir      string                     `json:"workingDir"`
	Env             []envSpec                  `json:"env"`
	EnvFrom         []json.RawMessage          `json:"envFrom"`
	Resources       resourcesSpec              `json:"resources"`
	VolumeMounts    []mountSpec                `json:"volumeMounts"`
	SecurityContext map[string]json.RawMessage `json:"securityContext"`
	RestartPolicy   string                     `json:"restartPolicy"`
}

type envSpec struct {
	Name      string          `json:"name"`
	Value     string          `json:"value"`
	ValueFrom json.RawMessage `json:"valueFrom"`
}

type resourcesSpec struct {
	Limits   map[string]string `json:"limits"`
	Requests map[string]string `json:"requests"`
}

func parse(resourceSpec json.RawMessage) (podSpec, error) {
	var spec podSpec
	if len(resourceSpec) == 0 {
		return spec, nil
	}
	if err := json.Unmarshal(resourceSpec, &spec); err != nil {
		return podSpec{}, fmt.Errorf("decode resource_spec: %w", err)
	}
	return spec, nil
}

// name is the volume's name.
func (v volumeSpec) name() string {
	var name string
	_ = json.Unmarshal(v["name"], &name) // the interface's schema makes it a text
	return name
}

// sources are the members that define the volume. A volume without any is an emptyDir, as in
// Kubernetes.
func (v volumeSpec) sources() []string {
	var given []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if name != "name" && isSet(v[name]) {
			given = append(given, name)
		}
	}
	if given == nil {
		return []string{"emptyDir"}
	}
	return given
}

// emptyDir is the source of a volume that begins empty.
type emptyDir struct {
	Medium    string `json:"medium"`
	SizeLimit string `json:"sizeLimit"`
}

func (v volumeSpec) emptyDir() (emptyDir, error) {
	var dir emptyDir
	if !isSet(v["emptyDir"]) {
		return dir, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(v["emptyDir"]))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&dir)
	return dir, err
}

func isSet(text json.RawMessage) bool { return len(text) > 0 && string(text) != "null" }

// Unsupported says, in sentences that name the field, which parts of a ResourceSpec one engine
// cannot give to a release whose deployment has secrets of these names. It leaves out parts
// that have no meaning here: the sizes of queue workers and databases, which a server of one
// machine does not have.
func Unsupported(resourceSpec json.RawMessage, secrets []string) []string {
	spec, err := parse(resourceSpec)
	if err != nil {
		return []string{"source_config.resource_spec cannot be read."}
	}
	c := &check{}
	c.breaks(spec.ServiceAccount != "", "service_account_name", "there are no Kubernetes service accounts")
	for i, s := range spec.ImagePullSecrets {
		c.breaks(!slices.Contains(secrets, s.Name), fmt.Sprintf("image_pull_secrets[%d].name", i),
			fmt.Sprintf("it must name one of the deployment's secrets, whose value is a Docker configuration with auths, and there is none of the name %q", s.Name))
	}
	for i, volume := range spec.Volumes {
		c.volume(fmt.Sprintf("volumes[%d]", i), volume)
	}
	c.labels("labels", spec.Labels)
	c.labels("annotations", spec.Annotations)
	c.mounts("volume_mounts", spec.VolumeMounts)
	c.containers("init_containers", spec.InitContainers)
	c.containers("sidecars", spec.Sidecars)
	return c.broken
}

type check struct{ broken []string }

// breaks notes why a field cannot be had, if something is wrong with it.
func (c *check) breaks(wrong bool, field, why string) {
	if wrong {
		c.broken = append(c.broken, fmt.Sprintf("source_config.resource_spec.%s cannot be had from this server's container engine: %s.", field, why))
	}
}

func (c *check) labels(field string, labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		c.breaks(strings.HasPrefix(name, labelPrefix), field, fmt.Sprintf("%q is the platform's, as all names that begin with %s", name, labelPrefix))
	}
}

func (c *check) volume(field string, volume volumeSpec) {
	sources := volume.sources()
	if !slices.Equal(sources, []string{"emptyDir"}) {
		c.breaks(true, field, "a volume can be an emptyDir only, not "+strings.Join(sources, " and "))
		return
	}
	dir, err := volume.emptyDir()
	switch {
	case err != nil:
		c.breaks(true, field+".emptyDir", "it may have medium and sizeLimit only, as texts")
	case dir.Medium != "" && dir.Medium != "Memory":
		c.breaks(true, field+".emptyDir.medium", `it may be "" or Memory`)
	case dir.SizeLimit != "" && dir.Medium == "":
		c.breaks(true, field+".emptyDir.sizeLimit", "a size can be kept with the medium Memory only")
	case dir.SizeLimit != "":
		c.amount(field+".emptyDir.sizeLimit", dir.SizeLimit)
	}
}

func (c *check) amount(field, text string) {
	if _, err := quantity(text); err != nil {
		c.breaks(true, field, err.Error())
	}
}

func (c *check) mounts(field string, mounts []mountSpec) {
	for i, m := range mounts {
		at := fmt.Sprintf("%s[%d]", field, i)
		c.breaks(!strings.HasPrefix(m.MountPath, "/") || m.MountPath == "/", at+".mountPath", "it must be an absolute path, and not /")
		c.breaks(m.SubPath != "", at+".subPath", "a volume can be mounted as a whole only")
		c.breaks(m.SubPathExpr != "", at+".subPathExpr", "a volume can be mounted as a whole only")
		c.breaks(m.MountPropagation != "" && m.MountPropagation != "None", at+".mountPropagation", "mounts are not propagated")
	}
}

func (c *check) containers(field string, containers []containerSpec) {
	for i, of := range containers {
		at := fmt.Sprintf("%s[%d]", field, i)
		for j, v := range of.Env {
			c.breaks(isSet(v.ValueFrom), fmt.Sprintf("%s.env[%d].valueFrom", at, j), "there is nothing to take a value from")
		}
		c.breaks(len(of.EnvFrom) > 0, at+".envFrom", "there is nothing to take variables from")
		c.mounts(at+".volumeMounts", of.VolumeMounts)
		c.resources(at+".resources.limits", of.Resources.Limits)
		c.resources(at+".resources.requests", of.Resources.Requests)
		c.security(at+".securityContext", of.SecurityContext)
		c.breaks(field == "init_containers" && of.RestartPolicy != "" && of.RestartPolicy != "OnFailure", at+".restartPolicy",
			"an init container runs to its end; what runs on is one of sidecars")
	}
}

func (c *check) resources(field string, amounts map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if name == "cpu" || name == "memory" {
			c.amount(field+"."+name, amounts[name])
		} else {
			c.breaks(true, field+"."+name, "it gives out cpu and memory only")
		}
	}
}

func (c *check) security(field string, context map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(context)) {
		value := context[name]
		switch {
		case !isSet(value):
		case name == "runAsUser" || name == "runAsGroup":
			var id uint32
			c.breaks(json.Unmarshal(value, &id) != nil, field+"."+name, "it must be a number")
		case name == "readOnlyRootFilesystem":
			var flag bool
			c.breaks(json.Unmarshal(value, &flag) != nil, field+"."+name, "it must be true or false")
		case (name == "allowPrivilegeEscalation" || name == "privileged") && string(value) == "false":
			// Containers run like this anyway.
		default:
			c.breaks(true, field+"."+name, "it may have runAsUser, runAsGroup and readOnlyRootFilesystem only, and no privileges can be added")
		}
	}
}

// suffixes of Kubernetes quantities; the longer ones first.
var suffixes = []struct {
	name   string
	factor float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
}

// quantity reads an amount as Kubernetes writes it: 500m, 0.5, 128Mi.
func quantity(text string) (float64, error) {
	number, factor := text, 1.0
	for _, suffix := range suffixes {
		if rest, ok := strings.CutSuffix(text, suffix.name); ok {
			number, factor = rest, suffix.factor
			break
		}
	}
	amount, err := strconv.ParseFloat(number, 64)
	if err != nil || amount < 0 || math.IsInf(amount, 0) || math.IsNaN(amount) {
		return 0, fmt.Errorf("%q is no amount such as 500m, 2 or 128Mi", text)
	}
	return amount * factor, nil
}
