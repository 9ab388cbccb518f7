package standalone

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/crash"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/jobs/reconcile"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/record/cipher"
	buildlocal "github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/compute/docker"
	computelocal "github.com/slipway-run/slipway/internal/seam/compute/local"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	registryfiles "github.com/slipway-run/slipway/internal/seam/registry/files"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	uploadfiles "github.com/slipway-run/slipway/internal/seam/upload/files"
	workflowlocal "github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// reconcileInterval is the time between two searches for lost work.
const reconcileInterval = 10 * time.Second

// maxHeaders bounds the headers of a request in bytes. The server holds them until they are
// complete, before it knows a key. A token has 16 KiB at most.
const maxHeaders = 64 << 10

// Config has the addresses of the server, the place of its data, and its other settings.
type Config struct {
	// Listen is host:port; with port 0 the system picks a port.
	Listen string
	// Data is the data directory, which is created if it is missing.
	Data string
	// BaseURL is the address that clients use; the listening address if it is empty.
	BaseURL string
	// Proxies are the servers in front of this one, which name the addresses of their clients.
	Proxies inbound.Proxies
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
	// closers close the parts that were opened.
	closers Closers
	key     *keyfile.Key
	table   *sqlite.Table
	// records is the table in the form that all other parts use.
	records table.Table
	// encrypted is the table below records, which encrypts what repositories want encrypted.
	encrypted *cipher.Table
	engine    *workflowlocal.Engine
	logs      *files.Logs
	builder   *buildlocal.Builder
	// users are the users of workspaces, nil if agents run as the server's user; noUsers is the
	// reason.
	noUsers error
	users   *child.Users
	// target runs the agents of deployments without a listener, as processes or as containers.
	target     *computelocal.Target
	processes  *process.Target
	containers *docker.Target
	// uploads are the sources that clients have uploaded.
	uploads *uploadfiles.Store
	// pushed are the images that clients have pushed.
	pushed *registryfiles.Registry

	workspaces   *workspace.Store
	keys         *apikey.Store
	webhooks     *webhook.Store
	integrations *integration.Service
	pushes       *push.Receiver
	// pushSecrets are the secrets by which messages of the GitHub App about pushes are known.
	pushSecrets []string
	listeners   *listener.Store
	deployments *deployment.Store
	assistants  *assistant.Store
	threads     *thread.Store
	runs        *run.Store
	store       *store.Store
	crons       *cron.Store

	rollout *rollout.Rollout
	runner  *runner.Runner
	agents  *runner.Agents
	// impatientAgents is agents for work that is repeated: it does not wait for an agent that
	// starts.
	impatientAgents *runner.Agents
	reconciler      *reconcile.Reconciler

	mux      *web.Mux
	listener net.Listener
	// secure is the TLS configuration of the listener, nil if it does not use TLS.
	secure  *tls.Config
	baseURL string
	// room is the memory for all large data in memory: bodies of requests, and events of
	// agents.
	room *budget.Budget
	// space is the disk that the data directory is on.
	space *disk.Space
	// crashed is true if the previous server crashed.
	crashed bool
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
	if err := openDirectory(config.Data); err != nil {
		return nil, err
	}
	lock, err := LockDirectory(config.Data)
	if err != nil {
		return nil, err
	}
	s.closers.AddCloser(lock)
	if err := s.watchForCrash(); err != nil {
		return nil, err
	}
	s.clear()
	if s.listener, err = net.Listen("tcp", config.Listen); err != nil {
		return nil, err
	}
	s.closers.AddListener(s.listener)
	if s.secure, err = config.TLS.open(s.path("certificates"), config.Log); err != nil {
		return nil, err
	}
	s.baseURL = cmp.Or(strings.TrimSuffix(config.BaseURL, "/"), config.TLS.URL(s.listener.Addr()))
	s.space = disk.Open(config.Data, cmp.Or(config.KeepFree, disk.Default), config.Disk, config.Log)
	if err := s.assemble(); err != nil {
		return nil, err
	}
	return s, nil
}

// crashFile is the file in the data directory to which the runtime writes why this process crashed.
const crashFile = "crash"

// watchForCrash looks whether the previous server crashed, and has a crash of this server noted.
func (s *Server) watchForCrash() (err error) {
	s.crashed, err = crash.Watch(s.path(crashFile))
	if s.crashed {
		s.config.Log.Warn("the previous server crashed", "report", s.path(crashFile+crash.Kept))
	}
	return err
}

// clear removes what killed backups and restores have left. The server works without this.
func (s *Server) clear() {
	data, err := filepath.Abs(s.config.Data)
	if err == nil {
		err = errors.Join(backupsOf(data).clear(), restoringTo(data).clear(), restoringIn(data).clear())
	}
	if err != nil {
		s.config.Log.Warn("what earlier backups or restores have left cannot be removed", "error", err)
	}
}

func (s *Server) path(name string) string { return filepath.Join(s.config.Data, name) }

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
		Handler: s.mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second, MaxHeaderBytes: maxHeaders,
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
func (s *Server) Close(ctx context.Context) error { return s.closers.Close(ctx) }
