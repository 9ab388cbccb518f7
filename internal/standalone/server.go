package standalone

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/agentserver"
	"github.com/slipway-run/slipway/internal/apikey"
	"github.com/slipway-run/slipway/internal/auth"
	buildlocal "github.com/slipway-run/slipway/internal/build/local"
	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/compute/process"
	"github.com/slipway-run/slipway/internal/controlplane"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/graph"
	"github.com/slipway-run/slipway/internal/reconcile"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/revisionlog"
	"github.com/slipway-run/slipway/internal/rollout"
	"github.com/slipway-run/slipway/internal/run"
	"github.com/slipway-run/slipway/internal/runner"
	"github.com/slipway-run/slipway/internal/secret/keyfile"
	"github.com/slipway-run/slipway/internal/table/sqlite"
	"github.com/slipway-run/slipway/internal/thread"
	"github.com/slipway-run/slipway/internal/web"
	"github.com/slipway-run/slipway/internal/workflow"
	workflowlocal "github.com/slipway-run/slipway/internal/workflow/local"
	"github.com/slipway-run/slipway/internal/workspace"
)

const (
	// reconcileInterval is how often what was lost is looked for.
	reconcileInterval = 10 * time.Second
	// stopGrace is how long running invocations may go on when the server stops.
	stopGrace = 10 * time.Second
)

// Config says where the server listens and where it keeps everything.
type Config struct {
	// Listen is host:port; port 0 picks one.
	Listen string
	// Data is the data directory, which is created if it is missing.
	Data string
	// BaseURL is the address that clients reach the server at; the listening address when empty.
	BaseURL string
	// Version is shown by /info.
	Version string
	Log     *slog.Logger
	// ReadyLimit is how long an agent may take to answer its health check; 0 stands for the target's own limit.
	ReadyLimit time.Duration
}

// Server is a one-machine server.
type Server struct {
	config     Config
	lock       *os.File
	table      *sqlite.Table
	engine     *workflowlocal.Engine
	builder    *buildlocal.Builder
	target     *process.Target
	rollout    *rollout.Rollout
	reconciler *reconcile.Reconciler
	workspaces *workspace.Store
	keys       *apikey.Store
	mux        *web.Mux
	listener   net.Listener
	baseURL    string
}

// Open prepares a server: it takes the data directory, opens what is in it and listens. The caller must call Serve or Close.
func Open(config Config) (server *Server, err error) {
	s := &Server{config: config}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open server: %w", err), s.Close(context.Background()))
		}
	}()
	if err := os.MkdirAll(config.Data, 0o700); err != nil {
		return nil, err
	}
	if s.lock, err = lockDirectory(config.Data); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", config.Listen); err != nil {
		return nil, err
	}
	s.baseURL = cmp.Or(strings.TrimSuffix(config.BaseURL, "/"), addressURL(s.listener.Addr()))
	if err := s.assemble(); err != nil {
		return nil, err
	}
	return s, nil
}

// addressURL is the URL of a listening address; one that listens everywhere is reached on the loopback interface.
func addressURL(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	}
	return "http://" + addr.String()
}

func (s *Server) path(name string) string { return filepath.Join(s.config.Data, name) }

// assemble puts the adapters under the domain and the domain under the handlers.
func (s *Server) assemble() error {
	log, now := s.config.Log, clock.System
	key, err := keyfile.Load(s.path("secret.key"))
	if err != nil {
		return err
	}
	if s.table, err = sqlite.Open(s.path("slipway.db")); err != nil {
		return err
	}
	logs, err := revisionlog.Open(s.path("logs"), now)
	if err != nil {
		return err
	}
	if s.builder, err = buildlocal.New(buildlocal.Config{Dir: s.path("builds"), Logs: logs, Log: log}); err != nil {
		return err
	}
	if s.target, err = process.New(process.Config{Dir: s.path("agents"), Logs: logs, Log: log, ReadyLimit: s.config.ReadyLimit}); err != nil {
		return err
	}
	// The engine calls the functions and the functions' stores call the engine: the functions are filled in below, before anything runs.
	var work *runner.Runner
	if s.engine, err = workflowlocal.New(workflowlocal.Config{
		Table: s.table, Definitions: statemachines.Files, Now: now, Log: log,
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner"},
		Functions: map[string]workflow.TaskFunc{
			"rollout": func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) { return s.rollout.Task(ctx, in) },
			"runner":  func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) { return work.Task(ctx, in) },
		},
	}); err != nil {
		return err
	}
	s.workspaces = workspace.NewStore(s.table, now)
	s.keys = apikey.NewStore(s.table, key, now)
	threads := thread.NewStore(s.table, now)
	deployments := deployment.NewStore(deployment.Config{Table: s.table, Workflow: s.engine, Sealer: key, Now: now, Log: log})
	runs := run.NewStore(run.Config{Table: s.table, Threads: threads, Workflow: s.engine, Now: now, Log: log})
	s.rollout = rollout.New(rollout.Config{
		Deployments: deployments, Threads: threads, Workflow: s.engine, Builder: s.builder, Logs: logs, Now: now, Log: log,
		Targets: map[revision.Source]compute.Target{revision.GitHub: s.target},
	})
	work = runner.New(runner.Config{Runs: runs, Deployments: deployments, Target: s.target, Graph: graph.NewClient(nil), Log: log})
	s.reconciler = &reconcile.Reconciler{Runs: runs, Rollout: s.rollout, Now: now, Log: log}
	return s.routes(deployments, threads, runs)
}

func (s *Server) routes(deployments *deployment.Store, threads *thread.Store, runs *run.Store) error {
	s.mux = web.NewMux(s.config.Log)
	authenticator := auth.New(s.keys)
	agentURL := func(deploymentID string) string { return s.baseURL + "/d/" + deploymentID }
	return errors.Join(
		controlplane.Register(s.mux, controlplane.Config{Deployments: deployments, Authenticator: authenticator, AgentURL: agentURL}),
		agentserver.Register(s.mux, agentserver.Config{
			Deployments: deployments, Threads: threads, Runs: runs, Authenticator: authenticator, Version: s.config.Version,
		}),
	)
}

// BaseURL is the address that clients reach the server at.
func (s *Server) BaseURL() string { return s.baseURL }

// Serve serves until ctx ends, then stops: no new work, running invocations get some time, what is not done by then goes on at the next start.
func (s *Server) Serve(ctx context.Context) error {
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	httpServer := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
	}
	if err := s.start(ctx); err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	background, stopBackground := context.WithCancel(ctx)
	reconciled := make(chan struct{})
	go func() {
		defer close(reconciled)
		s.reconciler.Every(background, reconcileInterval)
	}()
	served := make(chan error, 1)
	go func() { served <- httpServer.Serve(s.listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	stopBackground()
	<-reconciled
	s.config.Log.Info("stopping")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- httpServer.Shutdown(grace) }()
	s.engine.Close(grace)
	// Runs that could end have ended; who still waits for one is told to come back.
	cut(fault.New(fault.Unavailable, "The server is stopping. Try again."))
	if shutdown := <-stopped; shutdown != nil && !errors.Is(shutdown, context.DeadlineExceeded) {
		err = errors.Join(err, shutdown)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, httpServer.Close(), s.Close(grace))
}

// start brings back what an earlier process left, and writes the credentials, which tell that the server is ready.
func (s *Server) start(ctx context.Context) error {
	if err := s.rollout.Restore(ctx); err != nil {
		// One release that cannot be restored must not keep the others down.
		s.config.Log.ErrorContext(ctx, "restore releases", "error", err)
	}
	if err := s.engine.Resume(ctx); err != nil {
		return fmt.Errorf("resume workflows: %w", err)
	}
	// Whoever held a lease died with the process before, so all of them are over.
	if err := s.reconciler.Once(ctx, clock.System().AddDate(1, 0, 0)); err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	return s.writeCredentials(ctx)
}

// Close lets go of everything. It is safe on a server that was opened in part.
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
	if s.target != nil {
		errs = append(errs, s.target.Close(ctx))
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
