package ecs_test

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
)

const account = "123456789012"

// hasher is a secret.Hasher without a secret.
type hasher struct{}

func (hasher) MAC(purpose string, data []byte) []byte {
	sum := sha256.Sum256(append([]byte(purpose+"/"), data...))
	return sum[:]
}

// awsConfig is the configuration for services that answer at the URL.
func awsConfig(url string) aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
		Retryer: func() aws.Retryer { // the SDK's own, but it retries at once
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}
}

// testConfig is a configuration whose waits are short.
func testConfig(cfg aws.Config) ecs.Config {
	return ecs.Config{
		AWS: cfg, NamePrefix: "slipway", Cluster: "agents", Subnets: []string{"subnet-1", "subnet-2"}, SecurityGroups: []string{"sg-1"},
		ExecutionRole: "arn:aws:iam::" + account + ":role/execution", TaskRole: "arn:aws:iam::" + account + ":role/task",
		InfrastructureRole: "arn:aws:iam::" + account + ":role/infrastructure", LogGroup: "/slipway/agents",
		VPC: "vpc-1", ALBListener: "arn:aws:elasticloadbalancing:eu-central-1:" + account + ":listener/app/agents/1/2", ALBURL: "http://agents.internal",
		Hasher: hasher{}, After: func(time.Duration) <-chan time.Time { return time.After(10 * time.Millisecond) },
	}
}

func newRelease() compute.Release {
	ref := compute.Ref{Workspace: id.New(time.Now()), Deployment: id.New(time.Now()), Revision: id.New(time.Now())}
	return compute.Release{
		Ref: ref, Token: "token-of-" + ref.Revision,
		Artifact: build.Artifact{Image: "registry.test/agent@sha256:1", Env: map[string]string{"FILE": "from the file", "PORT": "9000"}},
		Env:      map[string]string{"PASSWORD": "hunter2", "SLIPWAY_REVISION_ID": ref.Revision, "HOST": "::1"},
	}
}

// once returns a context and a setting that let an Await look once: the context ends when the
// Await begins to wait.
func once(t *testing.T) (context.Context, func(*ecs.Config)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, func(c *ecs.Config) {
		c.After = func(time.Duration) <-chan time.Time {
			cancel()
			return nil
		}
	}
}

// cutter is an HTTP client that lets a number of requests through and no more. The last of
// them arrives, but its answer does not.
type cutter struct {
	mu   sync.Mutex
	left int
}

func (c *cutter) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.left--
	left := c.left
	c.mu.Unlock()
	if left < 0 {
		return nil, context.Canceled
	}
	answer, err := http.DefaultClient.Do(r)
	if err == nil && left == 0 {
		answer.Body.Close()
		return nil, context.Canceled
	}
	return answer, err
}
