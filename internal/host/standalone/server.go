package standalone

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
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
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/jobs/reconcile"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/build"
	builddocker "github.com/slipway-run/slipway/internal/seam/build/docker"
	buildlocal "github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/docker"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	registryfiles "github.com/slipway-run/slipway/internal/seam/registry/files"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/upload"
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

// reconcileInterval is the time between two searches for lost work.
const reconcileInterval = 10 * time.Second

// Config has the addresses of the server, the place of its data, and its other settings.
type Config struct {
	// Listen is host:port; with port 0 the system picks a port.
	Listen string
	// Data is the data directory, which is created if it is missing.
	Data string
	// BaseURL is the address that clients use; the listening address if it is empty.
	BaseURL string
	// TLS says how the server proves its name.
	TLS TLS
	// RedactSecrets hides the values of secrets from all callers, even if they may change them.
	RedactSecrets bool
	Log           *slog.Logger
	// Issuers are the issuers whose bearer tokens the server accepts besides keys.
	Issuers []oidc.Issuer
	// SignIn is the issuer at which people sign in, with the id of the server's client as its
	// audience; nil lets people sign in with API keys only.
	SignIn *oidc.Issuer
	// ReadyLimit is how long an agent may take to answer its health check; 0 stands for the
	// target's own limit.
	ReadyLimit time.Duration
	// DrainLimit is how long the runs of a replaced revision may go on; 0 stands for the
	// target's own limit.
	DrainLimit time.Duration
	// SleepAfter is how long nobody must call an agent that runs as a process, so that its process
	// is ended until the next request; 0 stands for never. Agents of the type prod do not sleep.
	// AwakeAgents is the number of awake agents that may sleep above which the agent that was idle
	// for the longest time sleeps after a short while; 0 stands for no bound.
	SleepAfter  time.Duration
	AwakeAgents int64
	// PrivateAddresses are the networks in which repositories, images, OAuth providers,
	// webhooks and the agents of listeners may have addresses although these are not public.
	PrivateAddresses outbound.Networks
	// LocalRepositories lets repositories be directories of this machine, OperatorSSH lets git use
	// the ssh keys, agent and configuration of the server's user. nil permits it while only this
	// machine can reach the server.
	LocalRepositories, OperatorSSH *bool
	// BuildImages makes images from the repositories of deployments, which then run in
	// containers; a container engine is required. ImageRegistry has the base images; "" stands
	// for the registry of Docker's official images.
	BuildImages   bool
	ImageRegistry string
	// GitHubApp is the file with the server's GitHub App, in the format of integration.ParseApp
	// and push.ParseSecrets; "" means that the server has no App.
	GitHubApp string
	// Limits are the rates of each key at the control plane; with the zero value only the quota
	// quota.Requests of its workspace counts.
	Limits web.Limits
	// KeepFree is how much of the data directory's file system is kept free; the zero value
	// stands for disk.Default. Disk reads the file system's figures; nil asks the system.
	KeepFree disk.Keep
	Disk     disk.Look
	// Quotas bound the resources of each workspace.
	Quotas quota.Limits
	// Memory is the most bytes of requests' bodies and agents' events, 0 for
	// runner.DefaultMemory; read data and waiting connections (readShare), states of runs
	// (stateShare) and held vectors (store.Held) come on top.
	Memory int64
	// RunEvents and RunBytes are how many events a run may send, and how many bytes of them; 0
	// stands for the runner's own bounds.
	RunEvents, RunBytes int64
	// Connections bounds the number of open connections; the zero value stands for the number
	// that the limit of open files allows.
	Connections inbound.Limits
	// Origins are the origins whose pages may call the agent servers from browsers; nil means
	// all.
	Origins []string
	// Users are the users that workspaces get for their agents and builds, if the server is
	// root; the zero value gives no users.
	Users child.UserRange
	// TrustAgents runs agents also if the agents of several workspaces cannot be kept apart.
	TrustAgents bool
}

// Server is a one-machine server.
type Server struct {
	config Config
	lock   *Lock
	table  *sqlite.Table
	// records is the table in the form that all other parts use.
	records   table.Table
	engine    *workflowlocal.Engine
	logs      *files.Logs
	images    *builddocker.Images
	builder   *buildlocal.Builder
	processes *process.Target
	// users are the users of workspaces, nil if agents run as the server's user; noUsers is the
	// reason.
	noUsers    error
	users      *child.Users
	containers *docker.Target
	// uploads are the sources that clients have uploaded.
	uploads *uploadfiles.Store
	// pushed are the images that clients have pushed.
	pushed     *registryfiles.Registry
	rollout    *rollout.Rollout
	reconciler *reconcile.Reconciler
	agents     *runner.Agents
	assistants *assistant.Store
	memory     *store.Store
	crons      *cron.Store
	// agentTokens recognises the agents that use the store.
	agentTokens deployment.Agents
	webhooks    *webhook.Store
	workspaces  *workspace.Store
	keys        *apikey.Store
	mux         *web.Mux
	listener    net.Listener
	// secure is the TLS configuration of the listener, nil if it does not use TLS.
	secure  *tls.Config
	baseURL string
	// room is the memory for all large data in memory: bodies of requests, and events of
	// agents.
	room *budget.Budget
	// space is the disk that the data directory is on.
	space *disk.Space
}

// Open prepares a server: it takes the data directory, opens its files and listens. The caller
// must call Serve or Close.
func Open(config Config) (server *Server, err error) {
	s := &Server{config: config.fitted(), room: budget.New(config.MemoryBound())}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open server: %w", err), s.Close(context.Background()))
		}
	}()
	if err := takeDirectory(config.Data); err != nil {
		return nil, err
	}
	if s.lock, err = LockDirectory(config.Data); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", config.Listen); err != nil {
		return nil, err
	}
	if s.secure, err = config.TLS.open(s.path("certificates")); err != nil {
		return nil, err
	}
	s.baseURL = cmp.Or(strings.TrimSuffix(config.BaseURL, "/"), config.TLS.url(s.listener.Addr()))
	s.space = disk.Open(config.Data, cmp.Or(config.KeepFree, disk.Default), config.Disk, config.Log)
	if err := s.assemble(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) path(name string) string { return filepath.Join(s.config.Data, name) }

// assemble puts the adapters under the domain and the domain under the handlers.
func (s *Server) assemble() error {
	log, now := s.config.Log, clock.System
	key, err := keyfile.Load(s.path(KeyFile))
	if err != nil {
		return err
	}
	if err := ownFile(s.path(DatabaseFile)); err != nil {
		return err
	}
	if s.table, err = sqlite.Open(s.path(DatabaseFile), sqlite.WithLogger(log)); err != nil {
		return err
	}
	s.records = table.Held(s.table)
	if s.logs, err = files.Open(s.path("logs"), now); err != nil {
		return err
	}
	if s.uploads, err = uploadfiles.Open(s.path("uploads"), key, now); err != nil {
		return err
	}
	s.uploads.Bound(s.files().Room)
	if err := s.openUsers(); err != nil {
		return err
	}
	if err := s.openBuilder(); err != nil {
		return err
	}
	for _, gap := range Gaps(s.config.Data, s.config.Users) {
		log.Warn(gap)
	}
	// Events of agents go to the deployments, which are filled in below, before any agent or
	// request runs.
	var deployments *deployment.Store
	alarm := func(ctx context.Context, ref compute.Ref, status compute.Status) { deployments.Alarm(ctx, ref, status) }
	// Agents are started under trials of the engine, which is filled in below, too.
	try := func(ctx context.Context, name string, start func() error) error {
		return s.engine.Try(ctx, name, start)
	}
	target, err := s.openTargets(key, alarm, try)
	if err != nil {
		return err
	}
	// The engine calls the functions and the functions' stores call the engine: the functions
	// are filled in below, before any of them runs.
	var work *runner.Runner
	if s.engine, err = workflowlocal.New(workflowlocal.Config{
		Table: s.records, Definitions: statemachines.Files, Now: now, Log: log, CountAttempts: []workflow.Machine{workflow.Run},
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"},
		Functions: map[string]workflow.TaskFunc{
			"rollout": func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) { return s.rollout.Task(ctx, in) },
			"runner":  func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) { return work.Task(ctx, in) },
			"webhook": func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
				return s.webhooks.Task(ctx, in)
			},
		},
	}); err != nil {
		return err
	}
	s.workspaces = workspace.NewStore(s.records, now)
	s.keys = apikey.NewStore(s.records, key, now)
	threads := thread.NewLimited(s.records, now, s.config.Quotas, log)
	s.webhooks = webhook.NewStore(webhook.Config{
		Table: s.records, Workflow: s.engine, Sealer: key, Now: now, Log: log, Private: s.config.PrivateAddresses, Quotas: s.config.Quotas,
		Own: func(ctx context.Context, workspace, id string) (webhook.Own, error) {
			return deployments.OwnWebhooks(ctx, workspace, id)
		},
	})
	listeners := listener.NewStore(listener.Config{
		Table: s.records, Sealer: key, Now: now, Log: log, Private: s.config.PrivateAddresses, Alarm: alarm, Subscribers: s.webhooks,
		Token: func(_ context.Context, revision string) (string, error) {
			return secret.InvokeToken(key, revision), nil
		},
	})
	repositories, err := s.openRepositories(key)
	if err != nil {
		return err
	}
	deployments = deployment.NewStore(deployment.Config{
		Subscribers:  s.webhooks,
		Integrations: repositories.integrations,
		Images:       s.pushed,
		Table:        s.records, Workflow: s.engine, Sealer: key, Now: now, Log: log, Version: build.Version(), Listeners: listeners,
		Unsupported: docker.Unsupported,
		Uploads:     s.uploads,
		Quotas:      s.config.Quotas, Files: s.files(),
	})
	s.assistants, s.memory = assistant.NewStore(s.records, now), store.NewLimited(s.records, now, s.config.Quotas, log).Hold(store.Held)
	s.agentTokens = deployment.Agents{Store: deployments, Hasher: func(context.Context) (secret.Hasher, error) { return key, nil }}
	runs := run.NewStore(run.Config{Table: s.records, Threads: threads, Workflow: s.engine, Now: now, Log: log, Webhooks: s.webhooks, Asked: deployments.Events().TellQuestions})
	s.crons = cron.NewStore(cron.Config{Table: s.records, Assistants: s.assistants, Threads: threads, Runs: runs, Deployments: deployments, Room: s.space.Room, Now: now, Log: log, Quotas: s.config.Quotas, Trials: s.engine})
	s.rollout = rollout.New(rollout.Config{
		Kept:         []rollout.Eraser{s.crons, s.assistants, s.memory, run.PermitEraser{Table: s.records}, upload.Whole{Store: s.uploads}, s.pushed},
		Images:       s.pushed,
		Integrations: repositories.integrations,
		Uploads:      s.uploads,
		Deployments:  deployments, Threads: threads, Workflow: s.engine, Builder: s.builder, Logs: s.logs, Hasher: key, Now: now, Log: log,
		Targets: map[revision.Source]compute.Target{
			revision.GitHub: target, revision.InternalSource: target, revision.ExternalDocker: target, revision.InternalDocker: target,
		},
		Listeners: listeners.Target(nil),
		Stopping:  s.engine.Closing(),
		Trials:    s.engine,
	})
	agents := s.agentClient()
	work = runner.New(runner.Config{
		ServerURL: s.agentURL, Runs: runs, Deployments: deployments, Target: listeners.Target(target), Graph: agents, Log: log, ReadLimits: deployments.RunLimits,
		Budget: s.room, States: s.config.states(), MaxEvents: s.config.RunEvents, MaxBytes: s.config.RunBytes, Reserve: s.space.Reserve,
	})
	s.agents = &runner.Agents{
		Deployments: deployments, Graph: agents, ServerURL: s.agentURL, Log: log,
		Target: func(context.Context) (compute.Target, error) { return listeners.Target(target), nil },
	}
	s.reconciler = &reconcile.Reconciler{Threads: threads, Runs: runs, Rollout: s.rollout, Webhooks: s.webhooks, Listeners: listeners, Now: now, Log: log}
	tokens := authservice.New(authservice.Config{Table: s.records, Sealer: key, Now: now, Log: log, Private: s.config.PrivateAddresses})
	repositories.receive(deployments)
	return s.routes(repositories, deployments, listeners, threads, runs, tokens, idempotency.NewStore(s.records, key, now).Alone())
}

func (s *Server) routes(
	repositories *repositories, deployments *deployment.Store, listeners *listener.Store, threads *thread.Store, runs *run.Store, tokens *authservice.Service, answers *idempotency.Store,
) error {
	s.mux = web.NewMux(s.config.Log)
	s.boundMemory()
	s.mux.KeepRoom(s.space)
	limiter := web.NewLimiter(s.config.Quotas, s.config.Limits, clock.System)
	s.mux.Limit(limiter)
	s.mux.Handle(uploadfiles.Route, s.mux.Storing(s.uploads.Handler(s.mux.Error)))
	s.serveRegistry()
	docs.Register(s.mux)
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
	agentURL := func(_ context.Context, deploymentID string) string { return s.agentURL(deploymentID) }
	return errors.Join(
		controlplane.Register(s.mux, controlplane.Config{
			Deployments: deployments, Listeners: listeners, Authenticator: authenticator, AgentURL: agentURL, Answers: answers,
			Metrics: metrics.New(), AuthService: tokens, Webhooks: s.webhooks,
			Integrations: repositories.integrations, Push: repositories.push, Room: s.space.Room,
			BaseURL: func(context.Context) string { return s.baseURL }, RedactSecrets: s.config.RedactSecrets,
			Logs: &deployment.Logs{Deployments: deployments, Reader: s.logs, Appender: s.logs, Now: clock.System},
			Tenancy: controlplane.Tenancy{
				Workspaces: s.workspaces, Rules: rules, Audit: audit.NewStore(s.records, clock.System),
				Keys:   func(context.Context) (*apikey.Store, error) { return s.keys, nil },
				Quotas: &quota.Usage{Table: s.records, Limits: s.config.Quotas, Files: s.files(), Live: limiter},
			},
		}),
		agentserver.Register(s.mux, agentserver.Config{
			Assistants: s.assistants, Store: s.memory, Crons: s.crons, Tokens: s.agentTokens,
			Agents: s.agents, Deployments: deployments, Threads: threads, Runs: runs, Authenticator: authenticator, Version: build.Version(),
			AgentURL: agentURL, Origins: s.config.Origins, Webhooks: s.webhooks, Answers: answers, Metrics: figures{metrics.New()},
			WebSockets: true, Log: s.config.Log,
		}),
	)
}

// agentURL is the address of a deployment's agent server.
func (s *Server) agentURL(deploymentID string) string { return s.baseURL + "/d/" + deploymentID }

// BaseURL is the address that clients use.
func (s *Server) BaseURL() string { return s.baseURL }

// Serve serves until ctx ends, then stops: it accepts no new work, gives running invocations
// some time, and leaves the rest of the work to the next start.
func (s *Server) Serve(ctx context.Context) error {
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	limits, err := s.connections()
	if err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	listener := inbound.New(s.listener, limits)
	httpServer := &http.Server{
		ConnContext: listener.Context, ConnState: listener.Changed,
		Handler: s.mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
		TLSConfig:   s.secure,
	}
	if err := s.start(ctx); err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	background, stopBackground := context.WithCancel(ctx)
	var timers sync.WaitGroup
	timers.Go(func() { s.reconciler.Every(background, reconcileInterval) })
	timers.Go(func() { s.crons.Run(background) })
	served := make(chan error, 1)
	go func() { served <- serve(httpServer, listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	stopBackground()
	return errors.Join(err, s.end(ctx, httpServer, &timers, cut))
}

// Close releases everything. It may be called on a server that was opened in part.
func (s *Server) Close(ctx context.Context) error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.engine != nil {
		s.engine.Close(ctx)
	}
	if s.builder != nil {
		errs = append(errs, s.builder.Close())
	}
	if s.images != nil {
		errs = append(errs, s.images.Close())
	}
	if s.processes != nil {
		errs = append(errs, s.processes.Close(ctx))
	}
	if s.containers != nil {
		errs = append(errs, s.containers.Close(ctx))
	}
	if s.pushed != nil {
		errs = append(errs, s.pushed.Close())
	}
	if s.uploads != nil {
		errs = append(errs, s.uploads.Close())
	}
	if s.keys != nil {
		s.keys.Wait(ctx)
	}
	if s.table != nil {
		errs = append(errs, s.table.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
		s.lock = nil
	}
	return errors.Join(errs...)
}
