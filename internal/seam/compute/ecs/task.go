package ecs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs/pod"
)

const (
	// container is the name that Express Mode requires for the container.
	container = "Main"
	port      = 8080
	// stopTimeout is how long a container may take to end, in seconds; Fargate allows no more.
	stopTimeout = 120
)

// environment is the agent's whole environment.
type environment struct{ plain, secret map[string]string }

func environmentOf(release compute.Release) environment {
	env := environment{plain: map[string]string{}, secret: release.Environment("0.0.0.0", strconv.Itoa(port))}
	for name, value := range env.secret {
		_, set := release.Env[name]
		if name == "HOST" || name == "PORT" || (set && release.IsSetting(name) && name != compute.TokenVariable) {
			env.plain[name] = value
			delete(env.secret, name)
		}
	}
	return env
}

// storeSecret makes the release's secret, or sets its value again, and returns its ARN.
func (t *Target) storeSecret(ctx context.Context, ref compute.Ref, values map[string]string) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	// Secrets Manager takes 64 KiB. The bound of a deployment's secrets counts no such escapes.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(values); err != nil {
		return "", err
	}
	name := aws.String(t.names.of(ref))
	created, err := t.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: name, SecretString: aws.String(text.String()), Description: aws.String("The environment of an agent."),
		Tags: tagsAs(t.names.tags(ref), func(key, value *string) secrettypes.Tag { return secrettypes.Tag{Key: key, Value: value} }),
	})
	if err == nil {
		return aws.ToString(created.ARN), nil
	}
	if _, exists := errors.AsType[*secrettypes.ResourceExistsException](err); !exists {
		return "", err
	}
	put, err := t.secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: name, SecretString: aws.String(text.String())})
	if err != nil {
		return "", err
	}
	return aws.ToString(put.ARN), nil
}

// define makes the release's secret, or gives it its present values, and registers the task
// definition that refers to it, for a restart if there is a restartID. Without one, it registers
// nothing if there is a task definition. It returns the ARN of the task definition.
func (t *Target) define(ctx context.Context, release compute.Release, restartID string) (string, error) {
	env := environmentOf(release)
	secretARN, err := t.storeSecret(ctx, release.Ref, env.secret)
	if err != nil {
		return "", err
	}
	if restartID == "" {
		newest, err := t.newestTask(ctx, release.Ref)
		if err != nil {
			return "", err
		}
		if newest.Status == types.TaskDefinitionStatusActive && refersTo(newest, secretARN) {
			return aws.ToString(newest.TaskDefinitionArn), nil
		}
	}
	input, err := t.taskOf(release, env, secretARN)
	if err != nil {
		return "", err
	}
	if restartID != "" {
		input.ContainerDefinitions[0].DockerLabels[labelRestart] = restartID
	}
	registered, err := t.ecs.RegisterTaskDefinition(ctx, input)
	if err != nil {
		return "", err
	}
	return aws.ToString(registered.TaskDefinition.TaskDefinitionArn), nil
}

// taskOf describes each task of a release.
func (t *Target) taskOf(release compute.Release, env environment, secretARN string) (*ecs.RegisterTaskDefinitionInput, error) {
	labels, err := pod.Labels(release.ResourceSpec)
	if err != nil {
		return nil, err
	}
	cpu, memory := fit(release.Resources.CPU, release.Resources.MemoryMB).texts()
	input := &ecs.RegisterTaskDefinitionInput{
		Family: aws.String(t.names.of(release.Ref)), Cpu: &cpu, Memory: &memory,
		NetworkMode:             types.NetworkModeAwsvpc,
		RequiresCompatibilities: []types.Compatibility{types.CompatibilityFargate},
		RuntimePlatform:         &types.RuntimePlatform{CpuArchitecture: types.CPUArchitecture(t.cfg.Architecture), OperatingSystemFamily: types.OSFamilyLinux},
		ExecutionRoleArn:        aws.String(t.cfg.ExecutionRole),
		ContainerDefinitions:    []types.ContainerDefinition{t.containerOf(release, env, secretARN)},
		Tags:                    t.tags(release.Ref),
	}
	if t.cfg.Compute == Express && release.Resources.Scales() {
		labels[labelJobs] = strconv.Itoa(release.Jobs())
	}
	input.ContainerDefinitions[0].DockerLabels = labels
	if t.cfg.TaskRole != "" {
		input.TaskRoleArn = aws.String(t.cfg.TaskRole)
	}
	return input, nil
}

// refersTo reports whether the definition's secrets are keys of the present secret: a secret
// that was deleted and made again has another ARN.
func refersTo(definition *types.TaskDefinition, secretARN string) bool {
	return len(definition.ContainerDefinitions) == 1 &&
		slices.ContainsFunc(definition.ContainerDefinitions[0].Secrets, func(s types.Secret) bool {
			return strings.HasPrefix(aws.ToString(s.ValueFrom), secretARN+":")
		})
}

func (t *Target) containerOf(release compute.Release, env environment, secretARN string) types.ContainerDefinition {
	definition := types.ContainerDefinition{
		Name: aws.String(container), Image: aws.String(release.Artifact.Image), Essential: aws.Bool(true),
		PortMappings: []types.PortMapping{{Name: aws.String("http"), ContainerPort: aws.Int32(port), Protocol: types.TransportProtocolTcp}},
		StopTimeout:  aws.Int32(stopTimeout),
		// A process that is not the agent itself, for example a shell, reaps no children and
		// passes on no signals.
		LinuxParameters: &types.LinuxParameters{InitProcessEnabled: aws.Bool(true)},
	}
	for _, name := range slices.Sorted(maps.Keys(env.plain)) {
		definition.Environment = append(definition.Environment, types.KeyValuePair{Name: aws.String(name), Value: aws.String(env.plain[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(env.secret)) {
		definition.Secrets = append(definition.Secrets, types.Secret{Name: aws.String(name), ValueFrom: aws.String(secretARN + ":" + name + "::")})
	}
	if t.cfg.LogGroup != "" {
		definition.LogConfiguration = &types.LogConfiguration{LogDriver: types.LogDriverAwslogs, Options: map[string]string{
			"awslogs-group": t.cfg.LogGroup, "awslogs-region": t.cfg.AWS.Region, "awslogs-stream-prefix": release.Revision,
			// An agent must not wait for its logs.
			"mode": "non-blocking",
		}}
	}
	return definition
}
