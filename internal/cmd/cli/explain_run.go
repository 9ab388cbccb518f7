package cli

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const explainRunLong = `Say why a run failed, was ended early or waits: the cause, the log lines that show the cause, what to
change, and when each part of the run was done.`

// runExplanation is the server's account of a run.
type runExplanation struct {
	Run      string      `json:"run_id"`
	Status   string      `json:"status"`
	Cause    *string     `json:"cause"`
	Evidence []string    `json:"evidence"`
	Remedy   *string     `json:"remedy"`
	Created  time.Time   `json:"created_at"`
	Started  *time.Time  `json:"started_at"`
	Ended    *time.Time  `json:"ended_at"`
	Timeline []runMoment `json:"timeline"`
	More     bool        `json:"has_more"`
}

type runMoment struct {
	Kind    string    `json:"kind"`
	Nodes   []string  `json:"nodes"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

func newRunsExplain() *cobra.Command {
	var where Where
	return output.WithJSON(where.asksAgent(&cobra.Command{Use: "explain DEPLOYMENT THREAD RUN", Short: "Say why a run failed, ended or waits, and when each part was done", Long: explainRunLong}, 3,
		func(cmd *cobra.Command, agent *agent, run string, _ []string) error {
			var shown runExplanation
			if err := agent.do(cmd.Context(), http.MethodGet, run+"/explanation", nil, &shown); err != nil {
				return err
			}
			return output.Data(cmd, shown.text(), shown)
		}))
}

// text returns the explanation for a person, the cause first.
func (e runExplanation) text() string {
	var text strings.Builder
	writeReason(&text, optional.Text(e.Cause), e.Evidence, optional.Text(e.Remedy))
	fmt.Fprintf(&text, "Run %s has the status %s.\n", e.Run, e.Status)
	moment := func(at time.Time, what string) {
		fmt.Fprintf(&text, "    %s  +%.3fs  %s\n", output.Time(at), at.Sub(e.Created).Seconds(), output.Plain(what))
	}
	moment(e.Created, "created")
	for _, m := range e.Timeline {
		what := m.Kind
		switch m.Kind {
		case "attempt":
			what = fmt.Sprintf("attempt %d", m.Attempt)
		case "step":
			what = "step " + strings.Join(m.Nodes, ", ")
		}
		moment(m.At, what)
	}
	if e.More {
		fmt.Fprintln(&text, "    ...")
	}
	if e.Ended != nil {
		moment(*e.Ended, "ended")
	}
	return strings.TrimSuffix(text.String(), "\n")
}
