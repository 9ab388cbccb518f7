package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

// noUsers is the range without users.
const noUsers = "none"

func newServe() *cobra.Command {
	var config standalone.Config
	var verbose bool
	var rate float64
	var cpuProfile string
	var programs, people []string
	var signIn string
	var users string
	var localRepositories, operatorSSH bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the one-machine server",
		Long: "Run the control plane and the agent servers on this machine, with everything kept in one directory.\n" +
			"The server is ready when GET /ok answers; it has then written credentials.json into that directory.",
		Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := addIssuers(&config, programs, people, signIn); err != nil {
				return exit.Usage(err)
			}
			if users != noUsers {
				var err error
				if config.Users, err = child.ParseUsers(users); err != nil {
					return exit.Usage(fmt.Errorf("--agent-users: %w", err))
				}
			}
			if cmd.Flags().Changed("local-repositories") {
				config.LocalRepositories = &localRepositories
			}
			if cmd.Flags().Changed("operator-ssh") {
				config.OperatorSSH = &operatorSSH
			}
			if err := checkFlags(cmd.Context(), cmd.Flags(), config, rate); err != nil {
				return exit.Usage(err)
			}
			each := web.Rate{PerSecond: rate, Burst: int(2 * rate)}
			config.Limits = web.Limits{Reads: each, Writes: each}
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			boundHeap(config)
			config.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			server, err := standalone.Open(config)
			if err != nil {
				return advised(err)
			}
			if err := greet(cmd.ErrOrStderr(), os.Args[0], server.BaseURL(), config.Data); err != nil {
				return err
			}
			return profile(cpuProfile, func() error { return server.Serve(cmd.Context()) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Listen, "listen", "127.0.0.1:8080", "address to listen on; port 0 picks one")
	flags.StringVar(&config.Data, "data", ".slipway", "directory that everything is kept in")
	flags.StringVar(&config.BaseURL, "base-url", "", "address that clients reach this server at (default: the listening address)")
	flags.Var(&value[inbound.Proxies]{to: &config.Proxies, kind: "networks=header", parse: parseProxies}, "proxy",
		"addresses of the proxies in front of the server, and the header in which they name the address of their client and nothing else, as 127.0.0.1=X-Real-IP; "+
			"they must overwrite what their client wrote there (default: each client has the address that its connection comes from)")
	flags.StringVar(&config.TLS.CertFile, "tls-cert", "", "file with the server's certificate chain as PEM; it is read again when it changes (default: no TLS)")
	flags.StringVar(&config.TLS.KeyFile, "tls-key", "", "file with the certificate's key as PEM")
	flags.StringArrayVar(&config.TLS.ACMEHosts, "acme-host", nil,
		"name to get a certificate for, by ACME (TLS-ALPN-01), for which the server must be reached at port 443 of that name; may be repeated")
	flags.StringVar(&config.TLS.ACMEEmail, "acme-email", "", "address that the ACME authority may write to")
	flags.StringVar(&config.TLS.ACMEDirectory, "acme-directory", "", "directory URL of the ACME authority (default: Let's Encrypt)")
	flags.DurationVar(&config.ReadyLimit, "ready-limit", 0, "how long an agent may take to answer its health check (default 5m)")
	flags.DurationVar(&config.DrainLimit, "drain-limit", 0, "how long runs may go on with a revision that was replaced, before the next one goes on with them (default 10m)")
	flags.StringArrayVar(&programs, "issuer", nil,
		"issuer, as https://issuer=audience, of bearer tokens that a workspace's trust rules may admit; may be repeated")
	flags.StringArrayVar(&people, "member-issuer", nil,
		"issuer, as https://issuer=audience, of the bearer tokens of people, who are looked up among a workspace's members; may be repeated")
	flags.StringVar(&signIn, "sign-in", "",
		"issuer, as https://issuer=client-id, at which a workspace's members sign in to the console and by slipway login; "+
			"the client is public, has no secret, and is registered with the address /sign-in/callback of this server (default: none)")
	flags.Float64Var(&rate, "rate-limit", 0,
		"how often a key may call the control plane, per second and twice that at once, reads and writes each (default: as often as the quota requests_per_second of its workspace allows)")
	flags.Var(&config.Quotas, "quota",
		"how much a workspace may have, as threads=20000000 or deployments=5000,webhooks=15; may be repeated; GET /v2/workspaces/current shows all quotas")
	flags.StringArrayVar(&config.Origins, "allow-origin", nil, "origin whose pages may call agents from browsers; may be repeated (default: all)")
	flags.BoolVar(&config.BuildImages, "build-images", false,
		"make images of what is deployed from repositories, and run it in containers; needs a Docker engine (default: it runs as processes)")
	flags.StringVar(&config.ImageRegistry, "image-registry", "",
		"registry, or a part of one, with the images python, node and debian that images are made from (default docker.io/library)")
	flags.StringVar(&config.GitHubApp, "github-app", "",
		"file with this server's GitHub App as JSON: app_id, slug, client_id, client_secret, private_key and webhook_secrets (default: none)")
	flags.Var(&config.PrivateAddresses, "private-addresses",
		"let repositories, images, OAuth providers, webhooks and the agents of listeners have addresses that are not public: all, or with =10.1.0.0/16,192.168.7.3 those")
	flags.Lookup("private-addresses").NoOptDefVal = "true"
	flags.BoolVar(&localRepositories, "local-repositories", false,
		"let repositories be directories of this machine, as file:///srv/agent.git (default: while only this machine can reach the server)")
	flags.BoolVar(&operatorSSH, "operator-ssh", false,
		"let git over ssh use the keys, the agent and the configuration of this user (default: while only this machine can reach the server)")
	flags.BoolVar(&config.RedactSecrets, "redact-secrets", false, "show the values of secrets to nobody (default: to those who may change them)")
	flags.StringVar(&users, "agent-users", child.DefaultUsers.String(),
		"range of user numbers, of which each workspace gets one for its agents and builds where the server is root, or "+noUsers)
	flags.BoolVar(&config.TrustAgents, "trust-agents", false, "run agents of several workspaces also where this machine cannot keep them apart")
	addBounds(flags, &config)
	flags.StringVar(&cpuProfile, "cpu-profile", "", "file that a profile of the processor's time is written to when the server ends (default: none)")
	flags.BoolVar(&verbose, "verbose", false, "log details")
	return cmd
}

// addIssuers adds the issuers whose tokens the server accepts.
func addIssuers(config *standalone.Config, programs, people []string, signIn string) error {
	trusted, err := oidc.ParseIssuers(programs, false)
	if err != nil {
		return fmt.Errorf("--issuer: %w", err)
	}
	members, err := oidc.ParseIssuers(people, true)
	if err != nil {
		return fmt.Errorf("--member-issuer: %w", err)
	}
	config.Issuers = slices.Concat(trusted, members)
	if signIn != "" {
		at, err := oidc.ParseIssuers([]string{signIn}, true)
		if err != nil {
			return fmt.Errorf("--sign-in: %w", err)
		}
		config.SignIn = &at[0]
	}
	return nil
}

// boundHeap sets when garbage is collected, unless the environment says so.
func boundHeap(config standalone.Config) {
	if os.Getenv("GOGC") == "" {
		// The heap is small, so collecting it less often costs a few MiB and saves processor time.
		// With 300 the server took 159 MiB after 85,000 runs, with 200 it takes 135 MiB.
		debug.SetGCPercent(200)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		// From here on it is collected more often, so that the heap holds the bounded live data and
		// little garbage.
		debug.SetMemoryLimit(2 * config.MemoryBound())
	}
}
