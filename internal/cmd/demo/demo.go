// Package demo shows the main job only through HTTP, as any other client would do it: it
// deploys an agent from a git repository, waits until it is served, lets it answer a question,
// interrupts the answer with a second question, and checks that the thread is correct and that
// no shown text is lost.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/local"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const (
	// pollInterval is the interval between two reads of an object for which the demo waits.
	pollInterval = 100 * time.Millisecond
	// cleanUpLimit limits the time for cleaning up after a failure.
	cleanUpLimit = 10 * time.Second
	// graph is the graph that the demo runs.
	graph = "agent"
)

// Config defines the demo and its server.
type Config struct {
	// Server is the server to use. If its URL is empty, the demo uses the server that uses the
	// directory Data. If there is no such server, the demo starts this program as a server, with a
	// temporary directory if Data is empty.
	Server client.Server
	Data   string
	// Agent is the directory from which a repository is made. Repo, unless empty, is the URL
	// of another repository, and Ref its branch or tag.
	Agent string
	Repo  string
	Ref   string
	// InterruptAfter is the number of tokens of the first answer after which the second
	// question is asked. It must be at least 1.
	InterruptAfter int
	// WaitTimeout is how long the whole demo may wait for the server.
	WaitTimeout time.Duration
	// Keep leaves the deployment, and the files of a server that the demo started.
	Keep     bool
	Progress output.Printer
}

// demo is one demo.
type demo struct {
	Config
	show func(output.Event)
	// dir is the demo's own directory.
	dir    string
	own    *local.Server
	client *client.Client
	// example is set if the agent is the example agent, whose whole thread is known.
	example bool
	// waiting describes the current work of the server.
	waiting string
	// deployment is set while there is a deployment to delete.
	deployment string
}

// Run runs the demo. Unless Keep is set, it leaves nothing behind except, if something failed,
// the log of a server that it started.
func Run(ctx context.Context, config Config) error {
	d := &demo{Config: config, show: output.Timed(config.Progress), waiting: "the server is still starting"}
	limited, cancel := context.WithTimeout(ctx, config.WaitTimeout)
	defer cancel()
	err := d.run(limited)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = exit.ErrInterrupted
	case limited.Err() != nil:
		err = &exit.TimeoutError{Waiting: d.waiting, Limit: config.WaitTimeout}
	}
	err = errors.Join(err, d.cleanUp(ctx, err))
	d.show(result(err))
	return errors.Join(err, config.Progress.Close())
}

func result(err error) output.Event {
	if err != nil {
		return output.Event{Kind: output.KindResult, Status: "failed", Text: err.Error()}
	}
	return output.Event{Kind: output.KindResult, Status: "succeeded", Text: "the thread reads as it should and holds all that was shown"}
}

func (d *demo) run(ctx context.Context) error {
	if d.Repo == "" {
		if err := checkAgent(d.Agent); err != nil {
			return err
		}
	}
	var err error
	if d.dir, err = os.MkdirTemp("", "slipway-demo-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := d.findServer(ctx); err != nil {
		return err
	}
	if err := d.findRepository(ctx); err != nil {
		return err
	}
	agent, err := d.deploy(ctx)
	if err != nil {
		return err
	}
	if err := d.converse(ctx, agent); err != nil {
		return err
	}
	if d.Keep {
		return nil
	}
	return d.remove(ctx)
}

// findServer finds the server to use, or starts a server.
func (d *demo) findServer(ctx context.Context) error {
	server, started := d.Server, ""
	if server.URL == "" && d.Data != "" {
		running, ok, err := local.Running(ctx, d.Data)
		if err != nil {
			return err
		}
		if ok {
			server = running
		}
	}
	if server.URL == "" {
		data := d.Data
		if data == "" {
			data = filepath.Join(d.dir, "data")
		}
		own, err := local.Start(ctx, "127.0.0.1:0", data, d.dir)
		d.own = own
		if err != nil {
			return err
		}
		server, started = own.Server, "started, data in "+data
	}
	d.client = client.New(server)
	if err := d.client.Call(ctx, http.MethodGet, "/ok", nil, nil); err != nil {
		return err
	}
	d.show(output.Event{Kind: output.KindServer, URL: server.URL, Text: started})
	return nil
}

// findRepository makes a repository of the agent, unless the configuration names a repository.
func (d *demo) findRepository(ctx context.Context) error {
	if d.Repo == "" {
		url, err := makeRepository(ctx, d.Agent, d.dir)
		if err != nil {
			return err
		}
		d.Repo, d.Ref, d.example = url, branch, true
	}
	d.show(output.Event{Kind: output.KindRepository, URL: d.Repo, Ref: d.Ref})
	return nil
}

// deployment and revision are the control plane's answers, as far as the demo reads them.
type deployment struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	LatestRevision string `json:"latest_revision_id"`
}

type revision struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Reason  string `json:"status_reason"`
	Message string `json:"status_message"`
}

// failed reports whether the revision will never be served.
func (r revision) failed() bool {
	return strings.Contains(r.Status, "FAILED") || r.Status == "SKIPPED" || r.Status == "INTERRUPTED"
}

// deploy creates a deployment and waits until it is served. It returns the path of its agent.
func (d *demo) deploy(ctx context.Context) (string, error) {
	var created deployment
	err := d.client.Call(ctx, http.MethodPost, "/v2/deployments", map[string]any{
		"name":                   "demo-" + strings.ToLower(rand.Text()[:8]),
		"source":                 "github",
		"source_config":          map[string]any{"repo_url": d.Repo},
		"source_revision_config": map[string]any{"repo_ref": d.Ref, "framework_config_path": configFile},
		"secrets":                []any{},
	}, &created)
	if err != nil {
		return "", err
	}
	d.deployment = created.ID
	d.show(output.Event{Kind: output.KindDeployment, Deployment: created.ID, Revision: created.LatestRevision, Name: created.Name})
	if err := d.awaitDeployed(ctx, created); err != nil {
		return "", err
	}
	return "/d/" + created.ID, nil
}

// awaitDeployed shows each status of the deployment's revision until it is served.
func (d *demo) awaitDeployed(ctx context.Context, created deployment) error {
	address := "/v2/deployments/" + created.ID + "/revisions/" + created.LatestRevision
	var shown string
	return d.poll(ctx, func() (done bool, err error) {
		var now revision
		if err := d.client.Call(ctx, http.MethodGet, address, nil, &now); err != nil {
			return false, err
		}
		d.waiting = "revision " + now.ID + " is still " + now.Status
		if now.Status == shown {
			d.show(output.Event{Kind: output.KindWaiting, Revision: now.ID, Status: now.Status})
			return false, nil
		}
		shown = now.Status
		d.show(output.Event{Kind: output.KindStatus, Deployment: created.ID, Revision: now.ID, Status: now.Status})
		if now.failed() {
			return false, fmt.Errorf("revision %s: %s: %s: %s", now.ID, now.Status, now.Reason, now.Message)
		}
		return now.Status == "DEPLOYED", nil
	})
}

// poll calls look until it reports that it is done.
func (d *demo) poll(ctx context.Context, look func() (done bool, err error)) error {
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		if !clock.Sleep(ctx, pollInterval) {
			return context.Cause(ctx)
		}
	}
}

// remove deletes the deployment and waits until it is gone.
func (d *demo) remove(ctx context.Context) error {
	address := "/v2/deployments/" + d.deployment
	d.waiting = "deployment " + d.deployment + " is still being deleted"
	if err := d.client.Call(ctx, http.MethodDelete, address, nil, nil); err != nil {
		return err
	}
	err := d.poll(ctx, func() (gone bool, err error) {
		err = d.client.Call(ctx, http.MethodGet, address, nil, nil)
		if client.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	d.show(output.Event{Kind: output.KindDeleted, Deployment: d.deployment})
	d.deployment = ""
	return nil
}
