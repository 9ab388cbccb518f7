package ecs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// The values of SLIPWAY_COMPUTE.
const (
	// Fargate puts each release behind the stack's load balancer.
	Fargate = "ecs"
	// Express lets ECS Express Mode make the load balancer, its rules and the scaling.
	Express = "express"
)

// Config holds the values that a Target needs. The values that have a default, which is named
// at each, may be zero.
type Config struct {
	// AWS holds region, credentials and, for tests, an endpoint.
	AWS aws.Config
	// Compute is Fargate or Express (Fargate).
	Compute string
	// NamePrefix begins the names of everything that the target makes. MaxPrefix is its
	// largest length.
	NamePrefix string
	// Cluster is the name or the ARN of the cluster.
	Cluster                 string
	Subnets, SecurityGroups []string
	// ExecutionRole reads the secrets, pulls the images and writes the logs. TaskRole is the
	// role of agents in the account, "" for no permissions. Express Mode makes its resources
	// with InfrastructureRole.
	ExecutionRole, TaskRole, InfrastructureRole string
	LogGroup                                    string
	// VPC is where the target groups are. ALBListener is the ARN of the listener that gets a
	// rule for each release, and ALBURL is where that listener listens. Express Mode needs
	// none of the three.
	VPC, ALBListener, ALBURL string
	// Architecture is the architecture of the images: ARM64 or X86_64 (ARM64).
	Architecture string
	// PublicIP gives tasks an address of their own, for subnets that have no other way to the
	// internet.
	PublicIP bool
	// Hasher makes the invoke tokens.
	Hasher secret.Hasher
	// Now and After are the clock. After is used for the time between two polls (time.After).
	Now   clock.Clock
	After func(time.Duration) <-chan time.Time
}

// Target implements compute.Target.
type Target struct {
	cfg       Config
	names     names
	ecs       *ecs.Client
	elb       *elasticloadbalancingv2.Client
	scaling   *applicationautoscaling.Client
	secrets   *secretsmanager.Client
	addresses addressCache
}

const (
	// maxAddresses bounds the number of addresses that a process keeps.
	maxAddresses = 10_000
	// addressKept is how long a process uses an address before it asks ECS again: another process
	// may have deleted the service and created it again, with another address.
	addressKept = 5 * time.Minute
)

// addressCache keeps the addresses of Express services, by revision, so that most runs take no call
// of ECS.
type addressCache struct{ *lru.Cache[string, address] }

// address is the URL of a release, as it was read from ECS at a time.
type address struct {
	url  string
	read time.Time
}

var (
	_ compute.Target    = (*Target)(nil)
	_ compute.Restarter = (*Target)(nil)
)

// readyLimit is how long a release may take to become healthy, and startLimit is how long its
// container may take to answer GET /ping once it runs. A release may have a limit of its own, which
// replaces both.
const readyLimit, startLimit = 10 * time.Minute, 5 * time.Minute

// maxAttempts is how often the SDK sends a request that is throttled or meets a fault of the
// service.
const maxAttempts = 6

// New returns a target. It sends no request.
func New(cfg Config) (*Target, error) {
	cfg.Compute = cmp.Or(cfg.Compute, Fargate)
	cfg.Architecture = cmp.Or(cfg.Architecture, "ARM64")
	cfg.AWS.RetryMaxAttempts = cmp.Or(cfg.AWS.RetryMaxAttempts, maxAttempts)
	if cfg.Now == nil {
		cfg.Now = clock.System
	}
	if cfg.After == nil {
		cfg.After = time.After
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("open ecs target: %w", err)
	}
	names, err := newNames(cfg)
	if err != nil {
		return nil, fmt.Errorf("open ecs target: %w", err)
	}
	return &Target{
		cfg:       cfg,
		names:     names,
		ecs:       ecs.NewFromConfig(cfg.AWS),
		elb:       elasticloadbalancingv2.NewFromConfig(cfg.AWS),
		scaling:   applicationautoscaling.NewFromConfig(cfg.AWS),
		secrets:   secretsmanager.NewFromConfig(cfg.AWS),
		addresses: addressCache{lru.New[string, address](maxAddresses)},
	}, nil
}

// check reports values that are missing or wrong. A process that only invokes agents behind
// the load balancer, and has no permissions here, needs only ALBURL and Hasher.
func (c Config) check() error {
	if c.Hasher == nil {
		return errors.New("there is no hasher to make invoke tokens with")
	}
	if c.Compute != Fargate && c.Compute != Express {
		return fmt.Errorf("compute is %q, not %q or %q", c.Compute, Fargate, Express)
	}
	if c.Compute == Fargate && c.ALBURL == "" {
		return errors.New("the URL of the load balancer is missing")
	}
	return nil
}

// Acquire returns where the release answers, and nothing else. A process that invokes an agent
// behind the load balancer has no permission to ask ECS, and a call per run would cost more
// than its answer is worth. If the release does not exist, the listener's default action
// answers with 503. Callers need not be counted, because the target group lets its present
// requests finish. With Express Mode, the first call of a process, and a call after
// addressKept, ask for the release's own address.
func (t *Target) Acquire(ctx context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	endpoint := compute.Endpoint{URL: t.cfg.ALBURL, Token: secret.InvokeToken(t.cfg.Hasher, ref.Revision), Revision: ref.Revision}
	if t.cfg.Compute == Express {
		var err error
		if endpoint.URL, err = t.expressURL(ctx, ref); err != nil {
			return compute.Endpoint{}, nil, err
		}
	}
	return endpoint, func() {}, nil
}

// Serves reports whether Acquire has an address for the release.
func (t *Target) Serves(ctx context.Context, ref compute.Ref) (bool, error) {
	_, _, err := t.Acquire(ctx, ref)
	if _, unavailable := errors.AsType[*compute.UnavailableError](err); unavailable {
		return false, nil
	}
	return err == nil, err
}
