package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const logsLong = `Print the output of a deployment's agent, or with --kind build the output of its build. The lines go to
stdout unchanged; a terminal gets no control characters. DEPLOYMENT is a name or an id. The agent is
that of the revision that serves, or of the newest revision if no revision serves. The build is that
of the newest revision.

With --follow, the command also prints new lines until no more lines can come. It connects again when
the connection is lost.`

// kinds maps the command line's names of a revision's two logs to the interface's names.
var kinds = map[string]string{"build": "build", "runtime": "deploy"}

// levels are the interface's names for the severity of a line.
var levels = []string{"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}

// wantedLogs selects the wanted lines.
type wantedLogs struct {
	revision, kind, run, level, text string
	since                            time.Duration
	follow                           bool
}

// check returns all errors of the selection at once.
func (w *wantedLogs) check() (err error) {
	if kinds[w.kind] == "" {
		err = errors.Join(err, fmt.Errorf("--kind must be build or runtime, not %q", w.kind))
	}
	if w.revision != "" && !id.Valid(w.revision) {
		err = errors.Join(err, fmt.Errorf("--revision must be the id of a revision, not %q", w.revision))
	}
	if w.run != "" && !id.Valid(w.run) {
		err = errors.Join(err, fmt.Errorf("--run must be the id of a run, not %q", w.run))
	}
	if w.level = strings.ToUpper(w.level); w.level != "" && !slices.Contains(levels, w.level) {
		err = errors.Join(err, fmt.Errorf("--level must be one of %s, not %q", strings.ToLower(strings.Join(levels, ", ")), w.level))
	}
	if w.since < 0 || w.since > 0 && w.follow {
		err = errors.Join(err, errors.New("--since must be more than 0, and is not for --follow, which begins with the first line"))
	}
	return err
}

// filter returns the query that requests the lines.
func (w *wantedLogs) filter() url.Values {
	filter := url.Values{"type": {kinds[w.kind]}}
	for name, value := range map[string]string{"run_id": w.run, "level": w.level, "query": w.text} {
		if value != "" {
			filter.Set(name, value)
		}
	}
	if w.since > 0 {
		filter.Set("start_time", clock.Format(time.Now().Add(-w.since)))
	}
	return filter
}

func newLogs() *cobra.Command {
	var where Where
	var wanted wantedLogs
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "logs DEPLOYMENT",
		Short: "Print the output of an agent or a build",
		Long:  logsLong,
		Args:  exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wanted.check(); err != nil {
				return exit.Usage(err)
			}
			client, err := where.Client(cmd)
			if err != nil {
				return err
			}
			log := &logReader{api: &api{Client: client}, kind: kinds[wanted.kind], filter: wanted.filter(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), json: asJSON}
			log.plain = output.IsTerminal(cmd.OutOrStdout())
			err = log.find(cmd.Context(), args[0], wanted.revision)
			if err == nil {
				err = log.print(cmd.Context(), wanted.follow)
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
	flags.StringVar(&wanted.revision, "revision", "", "id of a revision")
	flags.StringVar(&wanted.kind, "kind", "runtime", "build or runtime")
	OfferValues(cmd, "kind", slices.Sorted(maps.Keys(kinds))...)
	flags.StringVar(&wanted.run, "run", "", "only lines that name this run")
	flags.StringVar(&wanted.level, "level", "", "only lines of this level, or of a more serious one")
	OfferValues(cmd, "level", strings.Fields(strings.ToLower(strings.Join(levels, " ")))...)
	flags.StringVar(&wanted.text, "grep", "", "only lines that hold this text; capitals make no difference")
	flags.DurationVar(&wanted.since, "since", 0, "only lines of this time until now, as 10m")
	flags.BoolVarP(&wanted.follow, "follow", "f", false, "go on with what comes")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line, the last of them the result")
	return cmd
}
