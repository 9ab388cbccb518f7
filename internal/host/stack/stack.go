package stack

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs/pod"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/kms"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/stepfn"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// Stack makes the adapters and stores. It is safe for concurrent use. The linker leaves out the
// parts that a function does not use.
type Stack struct {
	Environment
	Log *slog.Logger
	// AWS is the configuration of all clients.
	AWS aws.Config
	// Tokens checks bearer tokens that are not keys; nil refuses them. Package stack/issuers
	// makes the value.
	Tokens auth.Tokens
	// Images is the registry that clients push to; nil accepts no images. See package
	// stack/images.
	Images registry.Registry
	// Uploads accepts sources of deployments; nil accepts no sources. See package
	// stack/uploads.
	Uploads upload.Store
	// Patient waits for a busy table for as long as a call may take. It is set in workers,
	// because a workflow or a timer only repeats abandoned work; it is not set where requests
	// are answered.
	Patient bool
	// Alarm receives the reports of listeners about ended agents; nil drops them.
	Alarm compute.Alarm

	table       once[*dynamo.Table]
	engine      once[workflow.Engine]
	key         once[*kms.Lazy]
	apiKeys     once[*apikey.Store]
	deployments once[*deployment.Store]
	listeners   once[*listener.Store]
	threads     once[*thread.Store]
	runs        once[*run.Store]
	assistants  once[*assistant.Store]
	store       once[*store.Store]
	crons       once[*cron.Store]
	answers     once[*idempotency.Store]
	webhooks    once[*webhook.Store]
	authService once[*authservice.Service]
}

// once is a value that is made at its first use.
type once[T any] struct {
	sync.Once

	value T
}

func (o *once[T]) get(open func() T) T {
	o.Do(func() { o.value = open() })
	return o.value
}

// Open reads the environment. It fails if a variable is missing that the function needs.
func Open(getenv func(string) string, log *slog.Logger, needs ...Need) (*Stack, error) {
	env, err := ReadEnvironment(getenv, needs...)
	if err != nil {
		return nil, err
	}
	return &Stack{Environment: env, Log: log, AWS: env.config()}, nil
}

// Function returns an opener for lambdahost.Start. It opens a stack with the table, the data key
// and the further needs of a function, makes the function, and reads the key.
func Function(open func(*Stack) (any, error), needs ...Need) func(*slog.Logger) (any, error) {
	return func(log *slog.Logger) (any, error) {
		s, err := Open(os.Getenv, log, append([]Need{NeedTable, NeedKey}, needs...)...)
		if err != nil {
			return nil, err
		}
		function, err := open(s)
		if err == nil {
			s.prepare()
		}
		return function, err
	}
}

// prepareTimeout is how long a function's start waits for the data key, at most.
const prepareTimeout = 2 * time.Second

// prepare reads the data key while Lambda initialises a function, which then has a whole processor.
// The first call finds the key, and open connections to DynamoDB and KMS. If that fails, the first
// call that needs the key reads it.
func (s *Stack) prepare() {
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	defer cancel()
	if _, err := s.Key(ctx); err != nil {
		s.Log.Warn("the data key could not be read at the start", "error", err)
	}
}

// patience is how long a request waits for a busy table before its client is told to come back.
const patience = 3 * time.Second

// Table is the stack's table.
func (s *Stack) Table() *dynamo.Table {
	return s.table.get(func() *dynamo.Table {
		opts := []dynamo.Option{dynamo.WithLogger(s.Log)}
		if !s.Patient {
			opts = append(opts, dynamo.WithPatience(patience))
		}
		return dynamo.Open(s.AWS, s.Environment.Table, opts...)
	})
}

// Engine is Step Functions.
func (s *Stack) Engine() workflow.Engine {
	return s.engine.get(func() workflow.Engine { return stepfn.New(sfn.NewFromConfig(s.AWS), s.StateMachines) })
}

// Key returns the key that protects secrets. The first request that needs the key reads and
// unwraps it; if that fails, the next request does so.
func (s *Stack) Key(ctx context.Context) (*kms.Key, error) {
	return s.key.get(func() *kms.Lazy { return kms.NewLazy(s.keyConfig()) }).Key(ctx)
}

func (s *Stack) keyConfig() kms.Config {
	return kms.Config{
		Client: awskms.NewFromConfig(s.AWS), KeyID: s.Environment.Key, Table: s.Table(),
		// Not the table's name: a table that is restored under another name must open, too. The
		// KMS key itself belongs to this stack alone.
		Context: map[string]string{"slipway": "data key"},
	}
}

// RotateKey makes a new key, which seals from now on.
func (s *Stack) RotateKey(ctx context.Context) error { return kms.Rotate(ctx, s.keyConfig()) }

// Sealer seals with the stack's key.
func (s *Stack) Sealer() secret.Sealer { return sealer{s} }

type sealer struct{ *Stack }

func (s sealer) Seal(ctx context.Context, bound secret.Bound, plain []byte) ([]byte, error) {
	key, err := s.Key(ctx)
	if err != nil {
		return nil, err
	}
	return key.Seal(ctx, bound, plain)
}

func (s sealer) Open(ctx context.Context, bound secret.Bound, sealed []byte) ([]byte, error) {
	key, err := s.Key(ctx)
	if err != nil {
		return nil, err
	}
	return key.Open(ctx, bound, sealed)
}

// Deployments is the store of deployments.
func (s *Stack) Deployments() *deployment.Store {
	return s.deployments.get(func() *deployment.Store {
		return deployment.NewStore(deployment.Config{
			Table: s.Table(), Workflow: s.Engine(), Sealer: s.Sealer(), Now: clock.System, Log: s.Log, Version: s.Version,
			Listeners: s.Listeners(), Integrations: checks{s}, Uploads: s.Uploads, Subscribers: s.Webhooks(), Images: s.Images, Unsupported: s.unsupported, Quotas: s.Quotas,
		})
	})
}

// unsupported returns the parts of a ResourceSpec that agents on ECS cannot have. If a machine
// is their host, it may give them more.
func (s *Stack) unsupported(resourceSpec json.RawMessage, secrets []string) []string {
	if s.IsHosted() {
		return nil
	}
	return pod.Unsupported(resourceSpec, secrets)
}

// Listeners is the store of listeners and of their releases.
func (s *Stack) Listeners() *listener.Store {
	return s.listeners.get(func() *listener.Store {
		return listener.NewStore(listener.Config{
			Table: s.Table(), Sealer: s.Sealer(), Now: clock.System, Log: s.Log, Private: s.PrivateAddresses, Alarm: s.Alarm, Subscribers: s.Webhooks(),
			Token: func(ctx context.Context, revision string) (string, error) {
				key, err := s.Key(ctx)
				if err != nil {
					return "", err
				}
				return secret.InvokeToken(key, revision), nil
			},
		})
	})
}

// Webhooks is the store of webhooks and of messages to them.
func (s *Stack) Webhooks() *webhook.Store {
	return s.webhooks.get(func() *webhook.Store {
		return webhook.NewStore(webhook.Config{
			Table: s.Table(), Workflow: s.Engine(), Sealer: s.Sealer(), Now: clock.System, Log: s.Log, Private: s.PrivateAddresses, Quotas: s.Quotas, Places: s.counts(),
			Own: func(ctx context.Context, workspace, id string) (webhook.Own, error) {
				return s.Deployments().OwnWebhooks(ctx, workspace, id)
			},
		})
	})
}

// Sending is webhook.Sending for a function that no client waits for. Where private addresses are
// permitted on AWS, only the function webhook sends: others may be in the network of the agents.
func (s *Stack) Sending(ctx context.Context) (_ context.Context, sent func()) {
	if len(s.PrivateAddresses) > 0 && s.Get(variableLoopback) != "true" {
		return ctx, func() {}
	}
	return webhook.Sending(ctx)
}

// Threads is the store of threads.
func (s *Stack) Threads() *thread.Store {
	return s.threads.get(func() *thread.Store { return thread.NewStore(s.Table(), clock.System, s.Quotas, s.Log) })
}

// Assistants is the store of assistants.
func (s *Stack) Assistants() *assistant.Store {
	return s.assistants.get(func() *assistant.Store { return assistant.NewStore(s.Table(), clock.System) })
}

// Store is the store that agents and their clients use.
func (s *Stack) Store() *store.Store {
	return s.store.get(func() *store.Store {
		return store.NewStore(s.Table(), clock.System, s.Quotas, s.Log).Compare(store.Compared)
	})
}

// Crons is the store of crons.
func (s *Stack) Crons() *cron.Store {
	return s.crons.get(func() *cron.Store {
		return cron.NewStore(cron.Config{
			Table: s.Table(), Assistants: s.Assistants(), Threads: s.Threads(), Runs: s.Runs(), Deployments: s.Deployments(), Now: clock.System, Log: s.Log, Quotas: s.Quotas,
		})
	})
}

// AgentTokens recognises the agents that use the store of their deployment.
func (s *Stack) AgentTokens() deployment.Agents {
	return deployment.Agents{Store: s.Deployments(), Hasher: func(ctx context.Context) (secret.Hasher, error) { return s.Key(ctx) }}
}

// workLease is the lease of a run that has a worker. Step Functions notices itself that a worker
// has died, and calls another worker. So only a run whose execution was stopped by hand, or has
// failed with all its repetitions, waits for the end of this lease.
const workLease = 5 * time.Minute

// Runs is the store of runs.
func (s *Stack) Runs() *run.Store {
	return s.runs.get(func() *run.Store {
		return run.NewStore(run.Config{
			Table: s.Table(), Threads: s.Threads(), Workflow: s.Engine(), Now: clock.System, Log: s.Log, Webhooks: s.Webhooks(), Observer: s.figures(),
			Paced: true, WorkLease: workLease,
		})
	})
}

// AuthService obtains and keeps tokens of users.
func (s *Stack) AuthService() *authservice.Service {
	return s.authService.get(func() *authservice.Service {
		return authservice.New(authservice.Config{
			Table: s.Table(), Sealer: s.Sealer(), Now: clock.System, Log: s.Log, Private: s.PrivateAddresses, Quotas: s.Quotas,
		})
	})
}

// Audit is the store of the audit logs.
func (s *Stack) Audit() *audit.Store { return audit.NewStore(s.Table(), clock.System) }

// Answers is the store of answers to requests that may be repeated.
func (s *Stack) Answers() *idempotency.Store {
	return s.answers.get(func() *idempotency.Store { return idempotency.NewStore(s.Table(), s.Sealer(), clock.System) })
}
