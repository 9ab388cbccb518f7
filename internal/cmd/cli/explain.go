package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const explainLong = `Say why a revision failed: the cause, the lines that say so, what to change, and how far the revision came. Without
REVISION it is the newest that failed.`

// explanation is what the command prints of a revision.
type explanation struct {
	diagnosis
	Revision string               `json:"revision_id"`
	Status   string               `json:"status"`
	Reason   string               `json:"status_reason"`
	Phases   map[string]time.Time `json:"phase_timestamps"`
	// Active is the revision that serves meanwhile.
	Active string `json:"active_revision_id,omitempty"`
}

func newExplain() *cobra.Command {
	var where Where
	var asJSON bool
	cmd := where.asks(&cobra.Command{Use: "explain DEPLOYMENT [REVISION]", Short: "Say why a revision failed, and what to change", Long: explainLong}, cobra.RangeArgs(1, 2),
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
			shown := explanation{Revision: failed.ID, Status: failed.Status, Reason: failed.Reason, Phases: failed.Phases, Active: d.Active}
			shown.diagnosis = diagnose(failed, server.tail(cmd.Context(), d.revision(failed.ID), failed))
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(shown)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), shown.text())
			return err
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// failed chooses the revision: the one that is named, or the newest that failed.
func (a *api) failed(ctx context.Context, d deployment, named []string) (found revision, err error) {
	if len(named) > 0 {
		err = a.do(ctx, http.MethodGet, d.revision(named[0]), nil, &found)
		if err == nil && !strings.HasSuffix(found.Status, "_FAILED") {
			err = fmt.Errorf("revision %s has not failed: it is %s", found.ID, found.Status)
		}
		return found, err
	}
	revisions, err := a.revisions(ctx, d)
	if err != nil {
		return found, err
	}
	at := slices.IndexFunc(revisions, func(r revision) bool { return strings.HasSuffix(r.Status, "_FAILED") })
	if at < 0 {
		return found, fmt.Errorf("no revision of %s has failed", d.Name)
	}
	return revisions[at], nil
}

// tail are the last lines of the log of the phase that failed. A log that cannot be read does not
// change what became of the revision.
func (a *api) tail(ctx context.Context, address string, failed revision) []string {
	kind := logOf(failed.Status)
	if kind == "" {
		return nil
	}
	var page struct {
		Logs []logLine `json:"logs"`
	}
	query := url.Values{"type": {kinds[kind]}, "order": {"desc"}, "limit": {strconv.Itoa(lastLines)}}
	if err := a.do(ctx, http.MethodGet, address+"/logs?"+query.Encode(), nil, &page); err != nil {
		return []string{"the log cannot be read: " + err.Error()}
	}
	var lines []string
	for _, line := range slices.Backward(page.Logs) {
		lines = append(lines, line.Message)
	}
	return lines
}

// logOf is the log that tells of a failure, in the words of the command line; "" when there is
// none.
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

// text is the explanation for a person, the cause first.
func (e explanation) text() string {
	var text strings.Builder
	fmt.Fprintln(&text, output.Plain(e.Cause))
	for _, line := range e.Evidence {
		fmt.Fprintln(&text, "    "+output.Plain(line))
	}
	if e.Remedy != "" {
		fmt.Fprintln(&text, "To do: "+output.Plain(e.Remedy))
	}
	serves := "no revision serves"
	if e.Active != "" {
		serves = "revision " + e.Active + " serves"
	}
	fmt.Fprintf(&text, "Revision %s is %s%s; %s.\n", e.Revision, e.Status, with(": ", e.Reason), serves)
	for _, phase := range slices.SortedFunc(maps.Keys(e.Phases), func(a, b string) int { return e.Phases[a].Compare(e.Phases[b]) }) {
		fmt.Fprintf(&text, "    %s  %s\n", output.Time(e.Phases[phase]), phase)
	}
	return text.String()
}
