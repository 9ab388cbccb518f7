package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/local"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const devLong = `Serve the agent of a directory on this machine, and deploy it again whenever a file
changes. Threads stay, so that you can go on talking (slipway chat) while you write. What the agent
prints is printed on stdout. At a terminal, the console opens in a browser.

The command uses the server that runs on the directory --data. If no server runs there, the command
starts a server and ends it with itself.`

// devOptions holds the values of the flags of dev.
type devOptions struct {
	deployOptions
	data, listen string
	// noBrowser says that the console is not opened.
	asJSON, noBrowser bool
}

func newDev() *cobra.Command {
	var options devOptions
	cmd := &cobra.Command{
		Use: "dev [DIR]", Short: "Serve the agent of a directory, and deploy it whenever a file changes", Long: devLong, Args: exit.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := options.plan(args)
			if err != nil {
				return exit.Usage(err)
			}
			printer := output.Choose(cmd.OutOrStdout(), cmd.ErrOrStderr(), options.asJSON)
			d := &developing{options: options, plan: plan, show: output.Timed(printer), cmd: cmd}
			return errors.Join(d.run(cmd.Context()), printer.Close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.name, "name", "", "name of the deployment (default: that of the directory)")
	flags.StringVar(&options.config, "config", "", "path of the framework configuration file in DIR (default: the one at the root)")
	flags.StringArrayVar(&options.secrets, "secret", nil, "secret, as NAME (its value is that of $NAME) or NAME=VALUE; may be repeated")
	flags.StringVar(&options.envFile, "env-file", "", "file with a secret in each line, as NAME=VALUE")
	flags.DurationVar(&options.limit, "wait-timeout", 15*time.Minute, "how long to wait until a revision is served")
	flags.StringVar(&options.data, "data", defaultData, "data directory of the server")
	flags.StringVar(&options.listen, "listen", "127.0.0.1:8080", "address that a server which is started listens on; port 0 picks one")
	flags.BoolVar(&options.asJSON, "json", false, "print everything that happens on stdout, one JSON object per line")
	flags.BoolVar(&options.noBrowser, "no-browser", false, "do not open the console")
	return cmd
}

// developing serves a directory that changes.
type developing struct {
	options devOptions
	plan    plan
	show    func(output.Event)
	cmd     *cobra.Command
	client  *client.Client
	// digest is the digest of the files that were deployed last.
	digest string
	// deployment is the last known state of the deployment.
	deployment deployment
}

func (d *developing) run(ctx context.Context) (err error) {
	stop, err := d.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	changes, err := watch(d.plan.dir, d.options.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, changes.Close()) }()
	if err := d.follow(ctx, changes); ctx.Err() == nil {
		return err
	}
	fmt.Fprintln(d.cmd.ErrOrStderr(), "the deployment and its threads stay; slipway dev goes on with them")
	return nil
}

// serve finds the server, or starts a server. The function stop ends a server that was
// started.
func (d *developing) serve(ctx context.Context) (stop func() error, err error) {
	server, runs, err := local.Running(ctx, d.options.data)
	if err != nil {
		return nil, err
	}
	stop = func() error { return nil }
	started := ""
	if !runs {
		dir, err := os.MkdirTemp("", "slipway-dev-")
		if err != nil {
			return nil, fmt.Errorf("make directory: %w", err)
		}
		own, err := local.Start(ctx, d.options.listen, d.options.data, dir)
		if err != nil {
			if own != nil {
				err = errors.Join(err, d.lastWords(own), own.Stop(context.WithoutCancel(ctx)))
			}
			return nil, errors.Join(err, child.RemoveFiles(dir))
		}
		server, started = own.Server, "started, data in "+d.options.data
		stop = func() error { return errors.Join(own.Stop(context.WithoutCancel(ctx)), child.RemoveFiles(dir)) }
	}
	d.client = client.New(server)
	d.show(output.Event{Kind: output.KindServer, URL: server.URL, Text: started})
	if err := d.openConsole(ctx); err != nil {
		d.show(output.Event{Kind: output.KindNote, Text: "open the console with: slipway open --data " + d.options.data})
	}
	return stop, nil
}

var errNoBrowser = errors.New("no browser is wanted")

// openConsole opens the console in a browser, if the command has a terminal.
func (d *developing) openConsole(ctx context.Context) error {
	if d.options.noBrowser || d.options.asJSON || !output.IsTerminal(d.cmd.OutOrStdout()) {
		return errNoBrowser
	}
	console, err := newConsoleAddress(ctx, d.client)
	if err == nil {
		err = openBrowser(console.URL)
	}
	return err
}

// lastWords shows why a server did not start.
func (d *developing) lastWords(own *local.Server) error {
	lines, err := own.LastLog()
	d.show(output.Event{Kind: output.KindLog, Name: "server log", Text: "its last lines", Lines: lines})
	return err
}

// follow deploys the directory whenever it changes. A change overtakes a deployment that is
// under way.
func (d *developing) follow(ctx context.Context, changes *changes) error {
	for {
		deploying, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- d.deploy(deploying) }()
		var err error
		select {
		case err = <-done:
		case <-changes.seen:
			// Changes while the directory is deployed are deployed next.
			cancel()
			<-done //nolint:errcheck // it is that of what was overtaken
			d.withdraw(ctx)
			continue
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(d.cmd.ErrOrStderr(), "slipway: "+err.Error())
			d.show(output.Event{Kind: output.KindNote, Text: "the next change is deployed again"})
		}
		printed := make(chan struct{})
		go func() {
			defer close(printed)
			d.print(deploying)
		}()
		err = d.changed(ctx, changes)
		cancel()
		<-printed
		if err != nil {
			return err
		}
	}
}

// deploy deploys the present content of the directory.
func (d *developing) deploy(ctx context.Context) error {
	next := &deploying{plan: d.plan, api: &api{Client: d.client}, show: d.show}
	err := next.run(ctx)
	d.deployment, d.digest = next.deployment, next.digest
	return err
}

// withdraw cancels a revision that a change has overtaken, whose build would delay the next
// revision. A revision that has ended meanwhile need not be cancelled.
func (d *developing) withdraw(ctx context.Context) {
	if d.deployment.Latest == "" || d.deployment.Latest == d.deployment.Active {
		return
	}
	if err := d.client.Call(ctx, "POST", d.deployment.revision(d.deployment.Latest)+"/cancel", nil, nil); err == nil {
		d.show(output.Event{Kind: output.KindNote, Text: "a file has changed: revision " + d.deployment.Latest + " is cancelled"})
	}
}

// changed waits until the files differ from the deployed files. If a directory cannot be
// packed because its files come and go, it is read again when it changes.
func (d *developing) changed(ctx context.Context, changes *changes) error {
	for {
		if d.digest != "" {
			digest, err := digestOf(ctx, d.plan.dir)
			if err == nil && digest != d.digest {
				d.show(output.Event{Kind: output.KindNote, Text: "a file has changed"})
				return nil
			}
		}
		select {
		case <-changes.seen:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if d.digest == "" {
			return nil
		}
	}
}

// digestOf returns the digest of a directory's tarball.
func digestOf(ctx context.Context, dir string) (string, error) {
	packed, err := pack(ctx, dir)
	if err != nil {
		return "", err
	}
	return packed.digest, packed.remove()
}

// print prints the agent's output until the agent is replaced. It is not an error if the
// output cannot be read.
func (d *developing) print(ctx context.Context) {
	if d.options.asJSON || d.deployment.Latest == "" || ctx.Err() != nil {
		return
	}
	log := &logReader{api: &api{Client: d.client}, kind: "deploy", filter: map[string][]string{"type": {"deploy"}}, stdout: d.cmd.OutOrStdout(), stderr: d.cmd.ErrOrStderr()}
	log.revision = d.deployment.revision(d.deployment.Latest)
	if err := log.follow(ctx); err != nil && ctx.Err() == nil {
		d.show(output.Event{Kind: output.KindNote, Text: "the agent's log cannot be read: " + err.Error()})
	}
}
