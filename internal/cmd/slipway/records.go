package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/cmd/cli"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// placeHelp explains on which records the commands work.
const placeHelp = `
The command works directly on the records, without a server and without an API key. The records are
those in a data directory (--data), which a server may use at the same time, or those in the table of
an AWS stack (--table, --kms-key), which it reads with your AWS credentials.`

// recordsSource is the place of the records.
type recordsSource struct {
	data               string
	table, key, region string
}

func (p *recordsSource) flags(cmd *cobra.Command) {
	output.WithJSON(cmd)
	cmd.Long = strings.TrimSpace(cmd.Short + ".\n" + cmd.Long + placeHelp)
	flags := cmd.Flags()
	flags.StringVar(&p.data, "data", ".slipway", "data directory of a server on this machine")
	flags.StringVar(&p.table, "table", "", "DynamoDB table of a stack, instead of --data ($SLIPWAY_TABLE)")
	flags.StringVar(&p.key, "kms-key", "", "KMS key of the stack, by which keys are made ($SLIPWAY_KMS_KEY)")
	flags.StringVar(&p.region, "region", "", "AWS region of the stack (default: that of your AWS configuration)")
}

// complete takes the values that the flags leave open from the environment.
func (p *recordsSource) complete(cmd *cobra.Command) error {
	if err := cli.Exclusive(cmd, "data", "table"); err != nil {
		return exit.Usage(err)
	}
	if cmd.Flags().Changed("data") {
		if p.key != "" || p.region != "" {
			return exit.Usage(errors.New("--kms-key and --region are for a stack's --table, not for --data"))
		}
		return nil
	}
	p.table, p.key = cmp.Or(p.table, os.Getenv("SLIPWAY_TABLE")), cmp.Or(p.key, os.Getenv("SLIPWAY_KMS_KEY"))
	return nil
}

// records are the stores that the commands use.
type records struct {
	workspaces *workspace.Store
	rules      *trust.Store
	audit      *audit.Store
	table      table.Table
	// hasher returns the hasher for API keys; commands that make no keys need no hasher.
	hasher func(context.Context) (secret.Hasher, error)
	// rotate makes a new key, which is used for sealing from then on.
	rotate func(context.Context) error
	// dir is the data directory, and data its table; "" and nil for a stack.
	dir   string
	data  *sqlite.Table
	close func() error
}

// onRecords lets a command work on the records that its flags name. The command's PreRunE checks
// its other flags before the records are opened.
func onRecords(cmd *cobra.Command, work func(ctx context.Context, r *records, args []string) error) *cobra.Command {
	var at recordsSource
	at.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := at.complete(cmd); err != nil {
			return err
		}
		open := at.openData
		if at.table != "" {
			open = at.openStack
		}
		r, err := open(cmd.Context())
		if err != nil {
			return explain(err)
		}
		r.workspaces, r.audit = workspace.NewStore(r.table, clock.System), audit.NewStore(r.table, clock.System)
		r.rules = trust.NewStore(r.table, clock.System)
		return explain(errors.Join(work(audit.By(cmd.Context(), audit.Actor{Subject: operator()}), r, args), r.close()))
	}
	return cmd
}

// inWorkspace is onRecords for a command that works in a workspace.
func inWorkspace(cmd *cobra.Command, work func(ctx context.Context, r *records, w workspace.Workspace, args []string) error) *cobra.Command {
	var in string
	cmd.Flags().StringVar(&in, "workspace", "", "id or name of the workspace (may be left out when there is only one)")
	return onRecords(cmd, func(ctx context.Context, r *records, args []string) error {
		w, err := r.workspace(ctx, in)
		if err != nil {
			return err
		}
		return work(ctx, r, w, args)
	})
}

// operator returns the name of the operator for the audit log: there are no credentials that
// contain it.
func operator() string {
	if current, err := user.Current(); err == nil {
		return current.Username + " (command line)"
	}
	return "command line"
}

// openData opens the records of a data directory, and returns an error if there are none.
func (p *recordsSource) openData(context.Context) (*records, error) {
	database := filepath.Join(p.data, standalone.DatabaseFile)
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no data directory of a server; make one with: slipway serve --data %s", p.data, p.data)
	}
	tb, err := sqlite.Open(database, sqlite.AsItIs(), sqlite.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(p.data, standalone.KeyFile)
	return &records{
		table:  tb,
		close:  tb.Close,
		hasher: func(context.Context) (secret.Hasher, error) { return standalone.LoadKeys(p.data) },
		rotate: func(context.Context) error {
			_, err := keyfile.Rotate(file)
			return err
		},
		dir:  p.data,
		data: tb,
	}, nil
}

// openStack opens the records of a stack, with the credentials that AWS's own tools would use.
func (p *recordsSource) openStack(ctx context.Context) (*records, error) {
	var options []func(*config.LoadOptions) error
	if p.region != "" {
		options = append(options, config.WithRegion(p.region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, exit.Usage(errors.New("the stack's region is missing: --region or $AWS_REGION"))
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, exit.Refused(fmt.Errorf("there are no AWS credentials: %w", err))
	}
	s := &stack.Stack{Environment: stack.Environment{Table: p.table, Key: p.key}, Log: slog.New(slog.DiscardHandler), AWS: cfg}
	tb := s.Table()
	keyed := func() error {
		if p.key == "" {
			return exit.Usage(errors.New("the stack's KMS key is missing: --kms-key or $SLIPWAY_KMS_KEY"))
		}
		return nil
	}
	return &records{
		table: tb, close: tb.Close,
		hasher: func(ctx context.Context) (secret.Hasher, error) {
			if err := keyed(); err != nil {
				return nil, err
			}
			return s.Key(ctx)
		},
		rotate: func(ctx context.Context) error {
			if err := keyed(); err != nil {
				return err
			}
			return s.RotateKey(ctx)
		},
	}, nil
}

// denied holds the AWS error codes for a denied request.
var denied = map[string]bool{
	"AccessDeniedException": true, "UnrecognizedClientException": true, "ExpiredTokenException": true, "InvalidSignatureException": true,
	"MissingAuthenticationTokenException": true, "InvalidClientTokenId": true,
}

// explain gives an error its exit code.
func explain(err error) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok && denied[api.ErrorCode()] {
		return exit.Refused(err)
	}
	if fault.Is(err, fault.Invalid) {
		return exit.Usage(err)
	}
	return err
}

// keys are the API keys. A command that makes no keys needs neither a hasher nor the KMS key.
func (r *records) keys(hasher secret.Hasher) *apikey.Store {
	return apikey.NewStore(r.table, hasher, clock.System)
}

// workspace returns the workspace with an id or a name. The argument may be "" if there is
// only one workspace.
func (r *records) workspace(ctx context.Context, idOrName string) (workspace.Workspace, error) {
	if idOrName != "" {
		return r.workspaces.Find(ctx, idOrName)
	}
	all, err := r.workspaces.List(ctx)
	switch {
	case err != nil:
		return workspace.Workspace{}, err
	case len(all) == 0:
		return workspace.Workspace{}, errors.New("there is no workspace yet; make one with: slipway workspaces create NAME")
	case len(all) > 1:
		return workspace.Workspace{}, exit.Usage(fmt.Errorf("there are %d workspaces: name one with --workspace", len(all)))
	default:
		return all[0], nil
	}
}
