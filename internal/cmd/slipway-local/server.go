package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/host/standalone"
	buildlocal "github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/emulator/apigateway"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
	"github.com/slipway-run/slipway/internal/test/emulator/iam"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
	"github.com/slipway-run/slipway/internal/test/emulator/sam"
	"github.com/slipway-run/slipway/internal/test/emulator/stepfunctions"
	"github.com/slipway-run/slipway/internal/test/template"
)

// Names of the stack's region and account; ARNs are made of them.
const (
	region    = "us-east-1"
	account   = "000000000000"
	stackName = "slipway"
)

// config holds the server's address, the served project and the place of its data.
type config struct {
	Listen, Data, BaseURL string
	// Root is the project's directory, Build is the directory of the functions.
	Root, Build string
	// DynamoDB is the URL of a DynamoDB that runs already; Table is the table's name.
	DynamoDB, Table string
	ReadyLimit      time.Duration
	DrainLimit      time.Duration
	Reconcile       time.Duration
	// GitHubApp is the file with the stack's GitHub App, as integration.ParseApp and
	// push.ParseSecrets read it; "" if there is no App.
	GitHubApp string
	// PrivateAddresses are the networks that are not public but may contain addresses of
	// repositories, OAuth providers, webhooks and the agents of listeners.
	PrivateAddresses outbound.Networks
	// Quotas are the limits of each workspace.
	Quotas quota.Limits
	// Parameters replace the defaults of the template's parameters.
	Parameters map[string]string
	// Concurrency is how many functions the account runs at once, 0 is for no limit.
	Concurrency int
	// IndexLag is how far the indexes of the table are behind its writes.
	IndexLag time.Duration
	// TableLatency and KeyLatency are how much longer DynamoDB and KMS take for each request.
	TableLatency, KeyLatency time.Duration
	// RecordCalls is the file in which the functions' calls to AWS services are recorded; ""
	// records nothing.
	RecordCalls string
	// Containers says that functions run under SAM, as far as SAM can run them.
	Containers bool
	// Terminal gets the data that a person needs to reach the server, Output gets the log.
	Terminal, Output io.Writer
	Log              *slog.Logger
}

// server is the stack on one machine. All its data is in one data directory:
//
//	dynamodb/           the table
//	workflows.db        the executions of state machines
//	kms.key             the key that wraps data keys and seals what the agent host keeps, mode
//	                    0600
//	credentials.json    base_url, api_key, tenant_id of the first workspace, mode 0600; written
//	                    when the server is ready
//	builds/ agents/ releases/   built trees, homes of the running agents, what was applied
//	logs/               build and agent output of each revision
//	functions/ services/ tmp/   records of processes; the functions' TMPDIR
//	sam/                what SAM reads; its containers bear the name of this directory
//	lock                held while a server uses the directory
type server struct {
	config   config
	stack    *template.Stack
	listener net.Listener
	baseURL  string

	registry *child.Registry
	dynamodb *dynamodb.Server
	endpoint string
	// table is a proxy in front of DynamoDB if the indexes are behind or the calls are
	// recorded; calls is nil if they are not recorded.
	table     *dynamodb.Lagging
	calls     *iam.Recorder
	engine    *stepfunctions.Service
	builder   *buildlocal.Builder
	target    *process.Target
	agents    *agenthost.Host
	token     string
	functions *lambda.Platform
	gateway   *apigateway.Gateway
	// containers are the functions under SAM, nil if all functions are processes.
	containers *sam.Stack
	// host is the address that services listen on.
	host string
	// environment holds the functions' variables for this machine, which override the
	// template's values; urls are the addresses of its services.
	environment, urls map[string]string
	// front answers clients, tasks calls the functions of workflows and timers.
	front http.Handler
	tasks invoker
	// closers close the parts that were opened.
	closers standalone.Closers
}

// open prepares a server: it takes the data directory, starts the services and listens. The caller
// must call serve, or close with closers.
func open(ctx context.Context, config config) (*server, error) {
	s := &server{config: config, host: "127.0.0.1"}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open server: %w", err), s.closers.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *server) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.path("tmp"), 0o700); err != nil {
		return err
	}
	lock, err := standalone.LockDirectory(s.config.Data)
	if err != nil {
		return err
	}
	s.closers.AddCloser(lock)
	if s.listener, err = net.Listen("tcp", s.config.Listen); err != nil {
		return err
	}
	s.closers.AddListener(s.listener)
	s.baseURL = cmp.Or(strings.TrimSuffix(s.config.BaseURL, "/"), standalone.TLS{}.URL(s.listener.Addr()))
	return s.assemble(ctx)
}

func (s *server) path(name string) string { return filepath.Join(s.config.Data, name) }

// serve serves until ctx ends, then stops: it accepts no new work and gives running
// invocations some time; work that is not done by then continues at the next start.
func (s *server) serve(ctx context.Context) error {
	httpServer := &http.Server{
		Handler: s.front, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second,
		ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- httpServer.Serve(s.listener) }()
	background, stopBackground := context.WithCancel(ctx)
	defer stopBackground()
	var timers sync.WaitGroup
	err := s.start(ctx)
	if err == nil {
		for _, schedule := range s.stack.Schedules {
			interval := cmp.Or(s.config.Reconcile, schedule.Every)
			timers.Go(func() { every(background, s.tasks, schedule.Function, interval, schedule.Input, s.config.Log) })
		}
		err = s.await(ctx, served)
	}
	stopBackground()
	timers.Wait()
	s.config.Log.Info("stopping")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- httpServer.Shutdown(grace) }()
	s.engine.Close(grace)
	// Runs that could end have ended. A client that still waits for a run is disconnected
	// together with its waiting function.
	if shutdown := <-stopped; shutdown != nil && !errors.Is(shutdown, context.DeadlineExceeded) {
		err = errors.Join(err, shutdown)
	}
	return errors.Join(err, httpServer.Close(), s.closers.Close(grace))
}

// await waits for the end.
func (s *server) await(ctx context.Context, served <-chan error) error {
	// A channel that is nil is never closed.
	var dynamodbEnded, apiEnded, lambdaEnded <-chan struct{}
	if s.dynamodb != nil {
		dynamodbEnded = s.dynamodb.Done()
	}
	if s.containers != nil {
		apiEnded, lambdaEnded = s.containers.API.Done(), s.containers.Lambda.Done()
	}
	select {
	case err := <-served:
		return err
	case <-dynamodbEnded:
		return errors.New("DynamoDB Local has ended")
	case <-apiEnded:
		return errors.New("sam local start-api has ended")
	case <-lambdaEnded:
		return errors.New("sam local start-lambda has ended")
	case <-ctx.Done():
		return nil
	}
}

// start restores the work that an earlier process left, and writes the credentials, which show
// that the server is ready.
func (s *server) start(ctx context.Context) error {
	if err := s.agents.Restore(ctx); err != nil {
		// A release that cannot be restored must not prevent the other releases from running.
		s.config.Log.ErrorContext(ctx, "restore releases", "error", err)
	}
	if err := s.engine.Resume(ctx); err != nil {
		return fmt.Errorf("resume workflows: %w", err)
	}
	c, err := credentials(ctx, s.config.Data, s.functionEnvironment(s.stack.Functions["Authorizer"]), s.config.Log)
	if err != nil {
		return fmt.Errorf("first workspace: %w", err)
	}
	c.BaseURL = s.baseURL
	if err := standalone.WriteCredentials(s.config.Data, c); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.config.Terminal, "URL:         %s\nX-Api-Key:   %s\nX-Tenant-Id: %s\n", c.BaseURL, c.APIKey, c.TenantID)
	return err
}
