package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/console"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/docs"
	"github.com/slipway-run/slipway/internal/api/metrics"
	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/jobs/reconcile"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/docker"
	registryfiles "github.com/slipway-run/slipway/internal/seam/registry/files"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	uploadfiles "github.com/slipway-run/slipway/internal/seam/upload/files"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	workflowlocal "github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/session"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// assemble puts the adapters under the domain and the domain under the handlers. The engine, the
// agents and some stores call parts that are opened after them, but only once all parts are open.
// So they get methods of the server, which name these parts.
func (s *Server) assemble() (err error) {
	if s.key, err = LoadKeys(s.config.Data); err != nil {
		return err
	}
	if err := s.openFiles(); err != nil {
		return err
	}
	if err := s.openUsers(); err != nil {
		return err
	}
	if err := s.openBuilder(); err != nil {
		return err
	}
	for _, gap := range Gaps(s.config.Data, s.config.Users) {
		s.config.Log.Warn(gap)
	}
	if err := s.openTargets(); err != nil {
		return err
	}
	if err := s.openEngine(); err != nil {
		return err
	}
	if err := s.openRepositories(); err != nil {
		return err
	}
	s.openStores()
	if err := s.warnOfRefusal(); err != nil {
		return err
	}
	s.openJobs()
	return s.routes()
}

// openFiles opens the table and the other files of the data directory.
func (s *Server) openFiles() (err error) {
	if err := ownFile(s.path(DatabaseFile)); err != nil {
		return err
	}
	if s.table, err = sqlite.Open(s.path(DatabaseFile), sqlite.WithLogger(s.config.Log)); err != nil {
		return errors.Join(err, s.space.Reserve()) // SQLite does not say that it could make no file
	}
	s.closers.AddCloser(s.table)
	if s.encrypted, err = cipher.Open(context.Background(), s.table, clock.System, s.cipher); err != nil {
		return err
	}
	s.records = table.Budgeted(s.encrypted)
	s.keys = apikey.NewStore(s.records, s.key, clock.System)
	s.closers.Add(func(ctx context.Context) error { s.keys.Wait(ctx); return nil })
	if s.logs, err = files.Open(s.path("logs"), clock.System); err != nil {
		return err
	}
	if s.uploads, err = uploadfiles.Open(s.path("uploads"), s.key, clock.System); err != nil {
		return err
	}
	s.closers.AddCloser(s.uploads)
	s.uploads.Bound(s.files().Room)
	return nil
}

// openEngine opens the engine of workflows, which calls the jobs.
func (s *Server) openEngine() (err error) {
	s.engine, err = workflowlocal.New(workflowlocal.Config{
		Table: s.records, Definitions: statemachines.Files, Now: clock.System, Log: s.config.Log,
		CountAttempts: []workflow.Machine{workflow.Run}, Unstored: []workflow.Machine{workflow.Run},
		Crashed:       s.crashed,
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"},
		Functions:     map[string]workflow.TaskFunc{"rollout": s.rolloutTask, "runner": s.runnerTask, "webhook": s.webhookTask},
	})
	if err != nil {
		return err
	}
	s.closers.Add(func(ctx context.Context) error { s.engine.Close(ctx); return nil })
	return nil
}

func (s *Server) rolloutTask(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	return s.rollout.Task(ctx, input)
}

func (s *Server) runnerTask(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	output, err := s.runner.Task(ctx, input)
	return output, waiting(err)
}

func (s *Server) webhookTask(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	output, err := s.webhooks.Task(ctx, input)
	return output, waiting(err)
}

// alarm tells the deployments of the end of an agent.
func (s *Server) alarm(ctx context.Context, ref compute.Ref, status compute.Status) {
	s.deployments.Alarm(ctx, ref, status)
}

// try starts an agent under a trial of the engine.
func (s *Server) try(ctx context.Context, name string, start func() error) error {
	return s.engine.Try(ctx, name, start)
}

// ownWebhooks returns the webhooks that a deployment's own configuration names.
func (s *Server) ownWebhooks(ctx context.Context, workspace, id string) (webhook.Own, error) {
	return s.deployments.OwnWebhooks(ctx, workspace, id)
}

// openStores opens the stores of the domain.
func (s *Server) openStores() {
	log, now := s.config.Log, clock.System
	s.workspaces = workspace.NewStore(s.records, now)
	s.webhooks = webhook.NewStore(webhook.Config{
		Table: s.records, Workflow: s.engine, Sealer: s.key, Now: now, Log: log, Private: s.config.PrivateAddresses, Quotas: s.config.Quotas,
		Own: s.ownWebhooks,
	})
	s.listeners = listener.NewStore(listener.Config{
		Table: s.records, Sealer: s.key, Now: now, Log: log, Private: s.config.PrivateAddresses, Alarm: s.alarm, Subscribers: s.webhooks,
		Token: func(_ context.Context, revision string) (string, error) {
			return secret.InvokeToken(s.key, revision), nil
		},
	})
	s.deployments = deployment.NewStore(deployment.Config{
		Subscribers:  s.webhooks,
		Integrations: s.integrations,
		Images:       s.pushed,
		Table:        s.records, Workflow: s.engine, Sealer: s.key, Now: now, Log: log, Version: build.Version(), Listeners: s.listeners,
		Unsupported: docker.Unsupported,
		Uploads:     s.uploads,
		Quotas:      s.config.Quotas, Files: s.files(),
	})
	s.openPushes()
	s.assistants = assistant.NewStore(s.records, now)
	s.store = store.NewStore(s.records, now, s.config.Quotas, log).Hold(store.Held)
	s.threads = thread.NewStore(s.records, now, s.config.Quotas, log)
	s.runs = run.NewStore(run.Config{Table: s.records, Threads: s.threads, Workflow: s.engine, Now: now, Log: log, Webhooks: s.webhooks, QuestionsChanged: s.deployments.Events().NotifyQuestions})
	s.crons = cron.NewStore(cron.Config{Table: s.records, Assistants: s.assistants, Threads: s.threads, Runs: s.runs, Deployments: s.deployments, Room: s.space.Room, Now: now, Log: log, Quotas: s.config.Quotas, Trials: s.engine})
}

// openJobs opens the work that the engine and the timers call.
func (s *Server) openJobs() {
	log, now := s.config.Log, clock.System
	s.rollout = rollout.New(rollout.Config{
		Kept:         []rollout.Eraser{s.crons, s.assistants, run.PermitEraser{Table: s.records}, s.uploads, s.pushed, s.encrypted},
		Items:        s.store,
		Images:       s.pushed,
		Integrations: s.integrations,
		Uploads:      s.uploads,
		Deployments:  s.deployments, Threads: s.threads, Workflow: s.engine, Builder: s.builder, Logs: s.logs, Hasher: s.key, Now: now, Log: log,
		Targets: map[revision.Source]compute.Target{
			revision.GitHub: s.target, revision.InternalSource: s.target, revision.ExternalDocker: s.target, revision.InternalDocker: s.target,
		},
		Listeners: s.listeners.Target(nil),
		Stopping:  s.engine.Closing(),
		Trials:    s.engine,
	})
	agents := s.agentClient()
	s.runner = runner.New(runner.Config{
		ServerURL: s.agentURL, Runs: s.runs, Deployments: s.deployments, Target: s.listeners.Target(s.target), Graph: agents, Log: log, ReadLimits: s.deployments.RunLimits,
		Budget: s.room, States: s.config.states(), MaxEvents: s.config.RunEvents, MaxBytes: s.config.RunBytes, Reserve: s.space.Reserve,
	})
	s.agents = &runner.Agents{
		Deployments: s.deployments, Graph: agents, ServerURL: s.agentURL, Log: log,
		Target: func(context.Context) (compute.Target, error) { return s.listeners.Target(s.target), nil },
	}
	impatient := *s.agents
	impatient.Wait = time.Second
	s.impatientAgents = &impatient
	s.reconciler = &reconcile.Reconciler{Threads: s.threads, Runs: s.runs, Rollout: s.rollout, Webhooks: s.webhooks, Listeners: s.listeners, Now: now, Log: log}
}

// routes puts the handlers of all interfaces into the mux.
func (s *Server) routes() error {
	s.mux = web.NewMux(s.config.Log)
	s.boundMemory()
	s.mux.Storage, s.mux.Proxies = s.space, s.config.Proxies
	limiter := web.NewLimiter(s.config.Quotas, s.config.Limits, clock.System)
	s.mux.Limiter = limiter
	s.mux.Handle(uploadfiles.Route, s.mux.Storing(s.uploads.Handler(s.mux.Error)))
	// The clients of the registry's protocol use this path, beside the control plane's own paths.
	s.mux.Handle(registryfiles.Path+"{$}", s.pushed)
	s.mux.Handle(registryfiles.Path+registryfiles.Prefix, s.pushed)
	page := docs.Register(s.mux)
	sessions := session.NewStore(s.records, s.keys, s.workspaces, clock.System)
	rules := trust.NewStore(s.records, clock.System)
	authenticator := auth.New(s.keys)
	if len(s.config.Issuers) > 0 {
		authenticator = auth.NewWithTokens(s.keys, &oidc.Tokens{
			Verifier: oidc.NewVerifier(s.config.Issuers, nil, clock.System), Workspaces: s.workspaces, Rules: rules,
		})
	}
	cookies := auth.SessionCookies{Secure: strings.HasPrefix(s.baseURL, "https://")}
	authenticator.AcceptSessions(sessions, cookies)
	console.Register(s.mux, console.Config{Authenticator: authenticator, Sessions: sessions, BaseURL: s.baseURL, Cookies: cookies})
	people := signin.Config{Workspaces: s.workspaces, Sessions: sessions, Cookies: cookies, BaseURL: s.baseURL}
	if s.config.SignIn != nil {
		people.Client = oidc.NewClient(*s.config.SignIn, nil, clock.System)
	}
	signin.Register(s.mux, people)
	tokens := authservice.New(authservice.Config{
		Table: s.records, Sealer: s.key, Now: clock.System, Log: s.config.Log, Private: s.config.PrivateAddresses, Quotas: s.config.Quotas,
	})
	answers := idempotency.NewStore(s.records, s.key, clock.System).Alone()
	agentTokens := deployment.Agents{
		Store: s.deployments, Hasher: func(context.Context) (secret.Hasher, error) { return s.key, nil }, Drain: s.config.DrainLimit,
	}
	agentURL := func(_ context.Context, deploymentID string) string { return s.agentURL(deploymentID) }
	return errors.Join(
		controlplane.Register(s.mux, controlplane.Config{
			Deployments: s.deployments, Listeners: s.listeners, Authenticator: authenticator, AgentURL: agentURL, Answers: answers,
			Metrics: metrics.New(), AuthService: tokens, Webhooks: s.webhooks,
			Integrations: s.integrations, Push: s.pushes, Room: s.space.Room,
			BaseURL: func(context.Context) string { return s.baseURL }, RedactSecrets: s.config.RedactSecrets,
			Logs: &deployment.Logs{Deployments: s.deployments, Reader: s.logs, Appender: s.logs, Now: clock.System},
			Tenancy: controlplane.Tenancy{
				Workspaces: s.workspaces, Rules: rules, Audit: audit.NewStore(s.records, clock.System),
				Keys:   func(context.Context) (*apikey.Store, error) { return s.keys, nil },
				Quotas: &quota.Usage{Table: s.records, Limits: s.config.Quotas, Files: s.files(), Live: limiter},
			},
		}),
		agentserver.Register(s.mux, agentserver.Config{
			Assistants: s.assistants, Store: s.store, Crons: s.crons, Tokens: agentTokens,
			Agents: s.agents, Deployments: s.deployments, Threads: s.threads, Runs: s.runs, Authenticator: authenticator, Version: build.Version(),
			AgentURL: agentURL, Origins: s.config.Origins, Webhooks: s.webhooks, Answers: answers, Metrics: figures{metrics.New()}, Docs: page,
			WebSockets: true, Log: s.config.Log,
		}),
	)
}
