package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// shownEntry is an entry of the audit log in JSON.
type shownEntry struct {
	ID       string  `json:"id"`
	Time     *string `json:"time"`
	Key      string  `json:"key_id,omitempty"`
	Subject  string  `json:"subject,omitempty"`
	Action   string  `json:"action"`
	Resource string  `json:"resource"`
	Outcome  string  `json:"outcome"`
	Detail   string  `json:"detail,omitempty"`
	Request  string  `json:"request_id,omitempty"`
}

func newAuditList() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "Show a workspace's audit log, the newest entry first", Args: exit.Arguments(cobra.NoArgs)}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if limit < 1 {
			return exit.Usage(errors.New("--limit must be at least 1"))
		}
		return nil
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "how many entries at most")
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, _ []string) error {
		entries, err := r.entries(ctx, w.ID, limit)
		if err != nil {
			return err
		}
		header := []string{"TIME", "WHO", "ACTION", "RESOURCE", "OUTCOME", "DETAIL"}
		return output.PrintAll(cmd, entries, showEntry, header, func(e audit.Entry) []string {
			return []string{output.Time(e.At), cmp.Or(e.Subject, e.Key), string(e.Action), e.Resource, string(e.Outcome), e.Detail}
		})
	})
}

func showEntry(e audit.Entry) shownEntry {
	return shownEntry{e.ID, clock.Nullable(e.At), e.Key, e.Subject, string(e.Action), e.Resource, string(e.Outcome), e.Detail, e.Request}
}

// entries reads as many pages as the limit needs.
func (r *records) entries(ctx context.Context, workspaceID string, limit int) ([]audit.Entry, error) {
	const page = 500
	var all []audit.Entry
	for cursor := ""; ; {
		entries, next, err := r.audit.List(ctx, workspaceID, audit.Filter{}, record.Window{Limit: min(page, limit-len(all)), Cursor: cursor})
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
		if cursor = next; cursor == "" || len(all) >= limit {
			return all, nil
		}
	}
}
