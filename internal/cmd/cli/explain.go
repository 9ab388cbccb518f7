package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const explainLong = `Say why a revision failed: the cause, the log lines that show the cause, what to change, and how far
the revision came. Without REVISION, this is the newest revision that failed. If no revision has
failed, or REVISION has not, the command says so.`

// explanation is the server's reason why a revision failed.
type explanation struct {
	Cause    string               `json:"cause"`
	Evidence []string             `json:"evidence"`
	Remedy   string               `json:"remedy"`
	Revision string               `json:"revision_id"`
	Status   string               `json:"status"`
	Reason   string               `json:"status_reason"`
	Phases   map[string]time.Time `json:"phase_timestamps"`
	// Active is the revision that serves meanwhile.
	Active string `json:"active_revision_id"`
	// Log has the last lines of the log of the phase that failed.
	Log []string `json:"log"`
}

func newExplain() *cobra.Command {
	var where Where
	return output.WithJSON(where.asks(&cobra.Command{Use: "explain DEPLOYMENT [REVISION]", Short: "Say why a revision failed, and what to change", Long: explainLong}, cobra.RangeArgs(1, 2),
		func(cmd *cobra.Command, server *api, args []string) error {
			if len(args) > 1 && !id.Valid(args[1]) {
				return exit.Usagef("REVISION must be the id of a revision, not %q", args[1])
			}
			d, err := server.deployment(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			failed, err := server.failed(cmd.Context(), d, args[1:])
			if err != nil {
				return err
			}
			if failed == "" {
				nothing := explanation{Active: d.Active}
				return output.Data(cmd, fmt.Sprintf("No revision of %s has failed; %s. Why a run failed: slipway runs explain %[1]s THREAD RUN", d.Name, nothing.serves()), nothing)
			}
			shown, err := server.explain(cmd.Context(), d.revision(failed))
			if answer, ok := errors.AsType[*client.APIError](err); ok && answer.Status == http.StatusConflict {
				shown, err = server.unfailed(cmd.Context(), d, failed)
			}
			if err != nil {
				return err
			}
			if output.AsJSON(cmd) {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(shown)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), shown.text())
			return err
		}))
}

// failed chooses the revision: the named revision, or the newest failed revision. It returns "" if
// no revision has failed.
func (a *api) failed(ctx context.Context, d deployment, named []string) (string, error) {
	if len(named) > 0 {
		return named[0], nil
	}
	revisions, err := a.revisions(ctx, d)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(revisions, func(r revision) bool { return strings.HasSuffix(r.Status, "_FAILED") })
	if at < 0 {
		return "", nil
	}
	return revisions[at].ID, nil
}

// explain asks the server why the revision at the address failed.
func (a *api) explain(ctx context.Context, address string) (e explanation, err error) {
	err = a.do(ctx, http.MethodGet, address+"/explanation", nil, &e)
	return e, err
}

// unfailed describes a revision that the server does not explain, because it has not failed. Its
// cause says so.
func (a *api) unfailed(ctx context.Context, d deployment, named string) (explanation, error) {
	var r revision
	err := a.do(ctx, http.MethodGet, d.revision(named), nil, &r)
	return explanation{Cause: "The revision has not failed.", Revision: r.ID, Status: r.Status, Reason: r.Reason, Phases: r.Phases, Active: d.Active}, err
}

// logOf returns the command line's name of the log that describes a failure, or "" if there is
// no such log.
func logOf(status string) string {
	switch status {
	case "BUILD_FAILED":
		return "build"
	case "DEPLOY_FAILED":
		return "runtime"
	default:
		return ""
	}
}

// writeReason writes for a person why something failed, and what to do.
func writeReason(text *strings.Builder, cause string, evidence []string, remedy string) {
	if cause != "" {
		fmt.Fprintln(text, output.Plain(cause))
	}
	for _, line := range evidence {
		fmt.Fprintln(text, "    "+output.Plain(line))
	}
	if remedy != "" {
		fmt.Fprintln(text, "To do: "+output.Plain(remedy))
	}
}

// text returns the explanation for a person, the cause first.
func (e explanation) text() string {
	var text strings.Builder
	writeReason(&text, e.Cause, e.Evidence, e.Remedy)
	fmt.Fprintf(&text, "Revision %s is %s%s; %s.\n", e.Revision, e.Status, with(": ", e.Reason), e.serves())
	for _, phase := range slices.SortedFunc(maps.Keys(e.Phases), func(a, b string) int { return e.Phases[a].Compare(e.Phases[b]) }) {
		fmt.Fprintf(&text, "    %s  %s\n", output.Time(e.Phases[phase]), phase)
	}
	return text.String()
}

// serves says which revision serves meanwhile.
func (e explanation) serves() string {
	if e.Active == "" {
		return "no revision serves"
	}
	return "revision " + e.Active + " serves"
}
