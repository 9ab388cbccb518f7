package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// cleanUp removes everything that the demo has made. failed is the error that ended the demo
// early, if there is one.
func (d *demo) cleanUp(ctx context.Context, failed error) error {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	d.withdraw(ctx)
	if d.own == nil {
		return d.dropDirectory(failed)
	}
	err := d.own.Stop(ctx)
	if failed == nil && err == nil || interrupted {
		return errors.Join(err, d.dropDirectory(failed))
	}
	return errors.Join(err, d.keepLog())
}

// withdraw requests the deletion of a deployment that the demo could not delete itself. If
// this fails, the error is only shown, because then the demo has already failed for another
// reason.
func (d *demo) withdraw(ctx context.Context) {
	if d.deployment == "" {
		return
	}
	if d.Keep {
		d.show(output.Event{Kind: output.KindKept, Deployment: d.deployment, Text: "deployment " + d.deployment})
		return
	}
	if err := d.client.Call(ctx, http.MethodDelete, "/v2/deployments/"+d.deployment, nil, nil); err != nil {
		d.show(output.Event{Kind: output.KindKept, Deployment: d.deployment, Text: "deployment " + d.deployment + ", because it could not be deleted: " + err.Error()})
		return
	}
	d.show(output.Event{Kind: output.KindDeleted, Deployment: d.deployment, Text: "being deleted"})
}

// dropDirectory removes the demo's directory, unless it contains files that must be kept.
func (d *demo) dropDirectory(failed error) error {
	if d.dir == "" {
		return nil
	}
	if !d.Keep || failed != nil {
		return child.RemoveFiles(d.dir)
	}
	// With a server and a repository of others, nothing is in the directory.
	if os.Remove(d.dir) == nil {
		return nil
	}
	d.show(output.Event{Kind: output.KindKept, Text: d.dir})
	if d.own != nil && d.Data == "" {
		d.show(output.Event{Kind: output.KindKept, Text: "the server's data; it goes on with: slipway serve --data " + filepath.Join(d.dir, "data")})
	}
	return nil
}

// keepLog shows the end of the server's log, and keeps only the log of all files in the demo's
// directory.
func (d *demo) keepLog() error {
	lines, err := d.own.LastLog()
	if err != nil {
		return err
	}
	name := d.own.LogFile()
	d.show(output.Event{Kind: output.KindLog, Text: name, Lines: lines})
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("remove directory: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		if entry.Name() != filepath.Base(name) {
			errs = append(errs, child.RemoveFiles(filepath.Join(d.dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
