package cli

import (
	"errors"
	"fmt"
	"github.com/slipway-run/slipway/internal/base/clock"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const logsLong = `Print what the agent of a deployment prints, or with --kind build what its build has printed: on stdout, each
line as it was; a terminal gets no control characters. DEPLOYMENT is a name or an id. The revision is the one that
serves, or the newest while none does; of builds it is the newest.

With --follow, go on with what comes, also when the connection is lost meanwhile, until no more can come.`

// kinds are the words for the two logs of a revision, and the interface's.
var kinds = map[string]string{"build": "build", "runtime": "deploy"}

// levels are the interface's words for how serious a line is.
var levels = []string{"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}

func newLogs() *cobra.Command {
	var where Where
	var revision, kind, run, level, text string
	var since time.Duration
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use:   "logs DEPLOYMENT",
		Short: "Print what an agent or a build prints",
		Long:  logsLong,
		Args:  exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if kinds[kind] == "" {
				err = errors.Join(err, fmt.Errorf("--kind must be build or runtime, not %q", kind))
			}
			if revision != "" && !id.Valid(revision) {
				err = errors.Join(err, fmt.Errorf("--revision must be the id of a revision, not %q", revision))
			}
			if run != "" && !id.Valid(run) {
				err = errors.Join(err, fmt.Errorf("--run must be the id of a run, not %q", run))
			}
			if level = strings.ToUpper(level); level != "" && !slices.Contains(levels, level) {
				err = errors.Join(err, fmt.Errorf("--level must be one of %s, not %q", strings.ToLower(strings.Join(levels, ", ")), level))
			}
			if since < 0 || since > 0 && follow {
				err = errors.Join(err, errors.New("--since must be more than 0, and is not for --follow, which begins with the first line"))
			}
			if err != nil {
				return exit.Usage(err)
			}
			filter := url.Values{"type": {kinds[kind]}}
			for name, value := range map[string]string{"run_id": run, "level": level, "query": text} {
				if value != "" {
					filter.Set(name, value)
				}
			}
			if since > 0 {
				filter.Set("start_time", clock.Format(time.Now().Add(-since)))
			}
			client, err := where.Client(cmd)
			if err != nil {
				return err
			}
			log := &logReader{api: &api{Client: client}, kind: kinds[kind], filter: filter, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), json: asJSON}
			log.plain = output.IsTerminal(cmd.OutOrStdout())
			err = log.find(cmd.Context(), args[0], revision)
			if err == nil {
				err = log.print(cmd.Context(), follow)
			}
			if err != nil && cmd.Context().Err() != nil {
				return fmt.Errorf("%w; the same command begins again", exit.ErrInterrupted)
			}
			return err
		},
	}
	where.Flags(cmd)
	where.completes(cmd)
	flags := cmd.Flags()
	flags.StringVar(&revision, "revision", "", "id of a revision")
	flags.StringVar(&kind, "kind", "runtime", "build or runtime")
	flags.StringVar(&run, "run", "", "only lines that name this run")
	flags.StringVar(&level, "level", "", "only lines of this level, or of a more serious one")
	flags.StringVar(&text, "grep", "", "only lines that hold this text; capitals make no difference")
	flags.DurationVar(&since, "since", 0, "only lines of this time until now, as 10m")
	flags.BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line, the last of them the result")
	return cmd
}
