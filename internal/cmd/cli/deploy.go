package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/dotenv"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const deployLong = `Deploy the agent of a directory. All files of the directory are uploaded, committed or not, except the
files that git ignores. If there is no deployment of the name, the command creates it; otherwise the
command changes it. Progress is printed on stderr, and only the address of the agent on stdout.

With --repo, the server clones a repository instead of the upload, and there is no DIR.

Secrets that you do not name keep their values. The value of a secret comes from the environment,
unless it stands behind the name.

  slipway deploy ./support --env-file .env
  slipway deploy --repo https://github.com/me/support --ref main --secret OPENAI_API_KEY`

// deployOptions holds the values of the flags of deploy.
type deployOptions struct {
	dir, name, config  string
	repo, ref          string
	secrets            []string
	envFile            string
	noWait, dry, force bool
	limit              time.Duration
}

func newDeploy() *cobra.Command {
	var where Where
	var options deployOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "deploy [DIR]",
		Short: "Deploy the agent of a directory",
		Long:  deployLong,
		Args:  exit.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := options.plan(args)
			if err != nil {
				return exit.Usage(err)
			}
			client, err := where.Client(cmd)
			if err != nil {
				return err
			}
			printer := output.Choose(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
			d := &deploying{plan: plan, api: &api{Client: client}, show: output.Timed(printer)}
			d.show(output.Event{Kind: output.KindServer, URL: where.server.URL, Text: where.From})
			return errors.Join(d.run(cmd.Context()), printer.Close())
		},
	}
	where.Flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&options.name, "name", "", "name of the deployment (default: that of the directory or the repository)")
	flags.StringVar(&options.config, "config", "", "path of the framework configuration file in DIR or the repository (default: the one at the root, or with --repo that of the deployment's last revision)")
	flags.StringVar(&options.repo, "repo", "", "URL of a git repository that the server clones, instead of DIR")
	flags.StringVar(&options.ref, "ref", "", "branch of --repo, or a tag as refs/tags/... (default: main)")
	flags.StringArrayVar(&options.secrets, "secret", nil, "secret, as NAME (its value is that of $NAME) or NAME=VALUE; may be repeated")
	flags.StringVar(&options.envFile, "env-file", "", "file with secrets, as NAME=VALUE; it is read as a .env file")
	flags.BoolVar(&options.noWait, "no-wait", false, "do not wait until the revision is served")
	flags.DurationVar(&options.limit, "wait-timeout", 15*time.Minute, "how long to wait until the revision is served; exit code 8 when it is over")
	flags.BoolVar(&options.dry, "dry-run", false, "say what would be done, and do nothing")
	flags.BoolVar(&options.force, "force", false, "make a revision also when nothing has changed")
	flags.BoolVar(&asJSON, "json", false, "print everything that happens on stdout, one JSON object per line")
	return cmd
}

// plan describes the deployment to make.
type plan struct {
	deployOptions
	values []secret
}

// plan completes the options, and reports their errors before anything is sent.
func (o deployOptions) plan(args []string) (plan, error) {
	if o.limit <= 0 {
		return plan{}, fmt.Errorf("--wait-timeout must be more than 0, not %s", o.limit)
	}
	if o.repo != "" && len(args) > 0 {
		return plan{}, errors.New("DIR and --repo exclude each other")
	}
	if o.repo == "" && o.ref != "" {
		return plan{}, errors.New("--ref is for --repo: without --repo, the files of DIR are uploaded as they are")
	}
	o.ref = cmp.Or(o.ref, "main")
	if o.dir = "."; len(args) > 0 {
		o.dir = args[0]
	}
	var err error
	if o.repo == "" {
		if o.config, err = findConfig(o.dir, o.config); err != nil {
			return plan{}, err
		}
	}
	if o.name == "" {
		if o.name, err = o.defaultName(); err != nil {
			return plan{}, err
		}
	}
	if !validName.MatchString(o.name) {
		return plan{}, fmt.Errorf("--name must be up to 63 letters, digits, dots, dashes and underscores that begin with a letter or a digit, not %q", o.name)
	}
	values, err := readSecrets(o.envFile, o.secrets)
	return plan{o, values}, err
}

// validName is the interface's rule for names.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// unnamable matches the characters that a name must not contain.
var unnamable = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// defaultName is the name of the directory, or of the repository.
func (o deployOptions) defaultName() (string, error) {
	path := strings.TrimSuffix(strings.TrimRight(o.repo, "/"), ".git")
	if o.repo == "" {
		var err error
		if path, err = filepath.Abs(o.dir); err != nil {
			return "", fmt.Errorf("find the name of %s: %w", o.dir, err)
		}
	}
	name := strings.Trim(unnamable.ReplaceAllString(filepath.Base(path), "-"), "-._")
	return name[:min(len(name), 63)], nil
}

const noVariable = "is not the name of an environment variable: letters, digits and _, not beginning with a digit"

// readSecrets reads the secrets of a file and of the flags.
func readSecrets(file string, named []string) (secrets []secret, err error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		variables, wrong := dotenv.Parse(string(text))
		if len(wrong) > 0 {
			return nil, fmt.Errorf("--env-file: line %d of %s is not NAME=VALUE", wrong[0], file)
		}
		for _, v := range variables {
			if !dotenv.IsName(v.Name) {
				return nil, fmt.Errorf("--env-file: line %d of %s: %q %s", v.Line, file, v.Name, noVariable)
			}
			secrets = append(secrets, secret{v.Name, v.Value})
		}
	}
	for _, text := range named {
		name, value, ok := strings.Cut(text, "=")
		if !dotenv.IsName(name) {
			return nil, fmt.Errorf("--secret: %q %s", name, noVariable)
		}
		if !ok {
			if value, ok = os.LookupEnv(name); !ok {
				return nil, fmt.Errorf("--secret %s: there is no $%s, and no value behind the name", name, name)
			}
		}
		secrets = append(secrets, secret{name, value})
	}
	return secrets, nil
}
