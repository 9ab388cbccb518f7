package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/build"
	buildlocal "github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	uploadfiles "github.com/slipway-run/slipway/internal/seam/upload/files"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/emulator/apigateway"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
	"github.com/slipway-run/slipway/internal/test/emulator/iam"
	"github.com/slipway-run/slipway/internal/test/emulator/kms"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
	"github.com/slipway-run/slipway/internal/test/emulator/stepfunctions"
	"github.com/slipway-run/slipway/internal/test/template"
)

// setupLimit is how long it may take until DynamoDB Local answers; the first time, it is
// fetched.
const setupLimit = 3 * time.Minute

// assemble starts the services, then the functions that use them, and then the gateway before
// the functions.
func (s *server) assemble(ctx context.Context) (err error) {
	if err := s.readTemplate(); err != nil {
		return err
	}
	if s.config.Containers {
		if err := s.installContainers(ctx); err != nil {
			return err
		}
	}
	if s.registry, err = child.Open(s.path("services")); err != nil {
		return err
	}
	s.closers.AddCloser(s.registry)
	if err := s.openCalls(); err != nil {
		return err
	}
	if err := s.openTable(ctx); err != nil {
		return err
	}
	key, err := keyfile.Load(s.path("kms.key"))
	if err != nil {
		return err
	}
	keys, err := kms.New(kms.Config{Key: key, ARN: s.said("SLIPWAY_KMS_KEY"), Log: s.config.Log})
	if err != nil {
		return err
	}
	if err := s.openAgents(key); err != nil {
		return err
	}
	s.environment = map[string]string{"SLIPWAY_BASE_URL": s.baseURL, "SLIPWAY_VERSION": build.Version(), "SLIPWAY_AGENT_HOST_TOKEN": s.token}
	s.environment["SLIPWAY_PRIVATE_ADDRESSES"] = s.config.PrivateAddresses.String()
	// Its functions are processes on this machine.
	s.environment["SLIPWAY_LOOPBACK_ADDRESSES"] = "true"
	s.environment["SLIPWAY_QUOTAS"] = s.config.Quotas.String()
	if err := s.offerTable(); err != nil {
		return err
	}
	if err := s.offer(map[string]http.Handler{"AWS_ENDPOINT_URL_KMS": keys, "SLIPWAY_AGENT_HOST": s.agents}); err != nil {
		return err
	}
	if err := s.offerGitHub(); err != nil {
		return err
	}
	if err := s.openFunctions(); err != nil {
		return err
	}
	s.front, s.tasks = s.gateway, s.functions
	if s.config.Containers {
		return s.openContainers(ctx)
	}
	return nil
}

// offerTable gives the functions the address of the table.
func (s *server) offerTable() error {
	s.urls = map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": s.endpoint}
	if s.table == nil {
		return nil
	}
	return s.offer(map[string]http.Handler{"AWS_ENDPOINT_URL_DYNAMODB": s.table})
}

// offer serves handlers and gives the functions their addresses.
func (s *server) offer(handlers map[string]http.Handler) error {
	latency := map[string]time.Duration{"AWS_ENDPOINT_URL_DYNAMODB": s.config.TableLatency, "AWS_ENDPOINT_URL_KMS": s.config.KeyLatency}
	for variable, handler := range handlers {
		handler = late(handler, latency[variable])
		if s.calls != nil && strings.HasPrefix(variable, "AWS_ENDPOINT_URL_") {
			handler = s.calls.Before(handler)
		}
		service, err := listen(handler, s.host, s.config.Log)
		if err != nil {
			return err
		}
		s.closers.AddCloser(service.http)
		s.urls[variable] = service.url
		s.config.Log.Debug("service", "variable", variable, "url", service.url)
	}
	return nil
}

func (s *server) readTemplate() error {
	read, err := template.Load(filepath.Join(s.config.Root, "template.yaml"))
	if err != nil {
		return err
	}
	s.stack, err = read.Resolve(template.Values{
		StackName: stackName, Region: region, Account: account, Parameters: s.config.Parameters, References: map[string]string{"Table": s.config.Table},
	})
	if err != nil {
		return err
	}
	for name, function := range s.stack.Functions {
		if _, err := os.Stat(s.bootstrap(function)); err != nil {
			return fmt.Errorf("function %s is not built (make functions): %w", name, err)
		}
	}
	return nil
}

func (s *server) bootstrap(f template.Function) string {
	return filepath.Join(s.config.Build, filepath.Base(f.CodeURI), "bootstrap")
}

// said returns the value of a variable that the template sets for all functions.
func (s *server) said(variable string) string {
	return s.stack.Functions["Authorizer"].Environment[variable]
}

// openTable starts DynamoDB Local, unless it runs already, and makes the table if it does not
// exist.
func (s *server) openTable(ctx context.Context) error {
	s.endpoint = s.config.DynamoDB
	if s.endpoint == "" {
		ctx, cancel := context.WithTimeout(ctx, setupLimit)
		defer cancel()
		started, err := dynamodb.Start(ctx, dynamodb.Config{
			Root: s.config.Root, Dir: s.path("dynamodb"), Registry: s.registry, Output: s.config.Output,
		})
		if err != nil {
			return err
		}
		s.dynamodb, s.endpoint = started, started.Endpoint()
		s.closers.Add(started.Stop)
	}
	declared, ok := s.stack.Tables["Table"]
	if !ok {
		return errors.New("the template has no resource Table")
	}
	client := awsdynamodb.New(awsdynamodb.Options{
		Region: region, BaseEndpoint: aws.String(s.endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	if err := dynamodb.CreateTable(ctx, client, s.config.Table, declared); err != nil {
		return err
	}
	if s.config.IndexLag == 0 && s.config.TableLatency == 0 && s.calls == nil {
		return nil
	}
	table, err := dynamodb.NewLagging(ctx, dynamodb.LagConfig{
		Client: client, Endpoint: s.endpoint, Table: s.config.Table, Declared: declared, Lag: s.config.IndexLag, Log: s.config.Log,
	})
	if err != nil {
		return err
	}
	s.table = table
	s.closers.Add(func(context.Context) error { table.Close(); return nil })
	return nil
}

// openCalls begins to record the functions' calls to AWS. In the record, the table has its
// default name, so that the records of several servers are comparable.
func (s *server) openCalls() (err error) {
	if s.config.RecordCalls == "" {
		return nil
	}
	s.calls, err = iam.Open(iam.Config{
		File: s.config.RecordCalls, Functions: slices.Collect(maps.Keys(s.stack.Functions)),
		Tables: map[string]string{s.config.Table: "arn:aws:dynamodb:" + region + ":" + account + ":table/" + stackName}, Log: s.config.Log,
	})
	if err == nil {
		s.closers.AddCloser(s.calls)
	}
	return err
}

// openAgents makes the agent host, which builds and runs agents.
func (s *server) openAgents(key *keyfile.Key) error {
	log := s.config.Log
	program, err := os.Executable()
	if err != nil {
		return err
	}
	logs, err := files.Open(s.path("logs"), clock.System)
	if err != nil {
		return err
	}
	uploads, err := uploadfiles.Open(s.path("uploads"), key, clock.System)
	if err != nil {
		return err
	}
	s.closers.AddCloser(uploads)
	if s.builder, err = buildlocal.New(buildlocal.Config{
		Dir: s.path("builds"), Private: s.config.Data, Uploads: uploads, Logs: logs, Log: log,
		// The stack runs on the machine of its only user.
		Networks: s.config.PrivateAddresses, LocalRepositories: true, OperatorSSH: true, Connect: []string{program, standalone.ConnectCommand},
	}); err != nil {
		return err
	}
	s.closers.AddCloser(s.builder)
	if s.target, err = process.New(process.Config{
		Dir: s.path("agents"), Private: s.config.Data, Logs: logs, Log: log,
		Limits: replica.Limits{ReadyLimit: s.config.ReadyLimit, DrainLimit: s.config.DrainLimit},
		Alarm:  func(ctx context.Context, ref compute.Ref, status compute.Status) { s.agents.Alarm(ctx, ref, status) },
	}); err != nil {
		return err
	}
	s.closers.Add(s.target.Close)
	agents := graph.NewTransport()
	agents.DialContext = s.target.Dialer(agents.DialContext)
	s.token = rand.Text()
	s.agents, err = agenthost.New(agenthost.Config{
		Dir: s.path("releases"), Sealer: key, Token: s.token, Target: s.target, Builder: s.builder, Uploads: uploads, Logs: logs, Log: log, Transport: agents,
	})
	if err == nil {
		s.closers.Add(func(context.Context) error { s.agents.Close(); return nil })
	}
	return err
}

// openFunctions makes the callers of functions, and the services that functions call during an
// invocation. Nothing runs before it returns.
func (s *server) openFunctions() (err error) {
	workflows, err := sqlite.Open(s.path("workflows.db"), sqlite.WithLogger(s.config.Log))
	if err != nil {
		return err
	}
	s.closers.AddCloser(workflows)
	// The engine calls the functions, and the functions call the engine, so they must know its
	// address.
	tasks := map[string]workflow.TaskFunc{}
	substitutions := map[string]string{}
	var definitions string
	for _, machine := range s.stack.Machines {
		maps.Copy(substitutions, machine.Substitutions)
		definitions = filepath.Dir(filepath.Join(s.config.Root, machine.Definition))
	}
	for _, arn := range substitutions {
		tasks[arn] = func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			return invoke(ctx, s.tasks, arn, input)
		}
	}
	s.engine, err = stepfunctions.New(stepfunctions.Config{
		Table: workflows, Definitions: os.DirFS(definitions), Substitutions: substitutions, Functions: tasks,
		Prefix: s.said("SLIPWAY_STATE_MACHINES"), Log: s.config.Log,
	})
	if err != nil {
		return err
	}
	s.closers.Add(func(ctx context.Context) error { s.engine.Close(ctx); return nil })
	if err := s.offer(map[string]http.Handler{"AWS_ENDPOINT_URL_SFN": s.engine}); err != nil {
		return err
	}
	if s.functions, err = lambda.New(s.platformConfig()); err != nil {
		return err
	}
	s.closers.Add(s.functions.Close)
	if err := s.offer(map[string]http.Handler{"AWS_ENDPOINT_URL_LAMBDA": s.functions}); err != nil {
		return err
	}
	s.gateway, err = apigateway.New(apigateway.Config{
		API: s.stack.API, Routes: s.stack.Routes, Functions: s.functions, Region: region, Account: account, Log: s.config.Log,
	})
	return err
}

func (s *server) platformConfig() lambda.Config {
	config := lambda.Config{
		Concurrency: s.config.Concurrency, Processes: s.path("functions"), Temp: s.path("tmp"), Region: region, Account: account, Output: s.config.Output, Log: s.config.Log,
	}
	for _, name := range slices.Sorted(maps.Keys(s.stack.Functions)) {
		f := s.stack.Functions[name]
		config.Functions = append(config.Functions, lambda.Function{
			Name: name, Alias: f.Alias, Bootstrap: s.bootstrap(f), Env: s.processEnvironment(f), Timeout: f.Timeout, MemoryMB: f.MemoryMB,
			Reserved: f.ReservedConcurrency, Concurrency: f.Concurrency, MaxProcesses: f.Processes,
		})
	}
	return config
}

// functionEnvironment returns the environment that the template declares for a function, with
// the values of this machine. As with other local tools, only declared variables can be set.
func (s *server) functionEnvironment(f template.Function) map[string]string {
	environment := maps.Clone(f.Environment)
	for _, said := range []map[string]string{s.environment, s.urls} {
		for name, value := range said {
			if _, declared := environment[name]; declared {
				environment[name] = value
			}
		}
	}
	return environment
}
