package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
)

// stored is how many deployments the measured control plane holds: a team has tens of them.
// patience is how long their rollouts may take to end.
const (
	stored   = 100
	patience = 5 * time.Minute
)

type rolledOut struct {
	ID             string `json:"id"`
	LatestRevision string `json:"latest_revision_id"`
}

// measureDeployments fills the control plane and measures the reads and writes of a server
// that is then started on it. It deploys an image that does not exist, so that rollouts end
// soon, and the measured requests are the only work.
func measureDeployments(ctx context.Context, c *client, duration time.Duration) error {
	begun := time.Now()
	var created atomic.Int64
	deployments := make([]rolledOut, stored)
	err := concurrently(64, stored, func() error {
		number := created.Add(1)
		return c.call(ctx, http.MethodPost, c.BaseURL+"/v2/deployments", map[string]any{
			"name": fmt.Sprintf("bench-%05d", number), "source": "external_docker", "secrets": []any{},
			"source_config":          map[string]any{},
			"source_revision_config": map[string]any{"image_uri": "localhost:1/nobody/has:this"},
		}, &deployments[number-1])
	})
	if err != nil {
		return err
	}
	fmt.Printf("%-14s %2d clients %8.0f /s\n", "POST deploy.", 64, stored/time.Since(begun).Seconds())
	for _, d := range deployments {
		if _, err := c.awaitRollout(ctx, d); err != nil {
			return err
		}
	}
	fmt.Printf("rollouts of %d deployments over     %8.1f s\n", stored, time.Since(begun).Seconds())
	fmt.Printf("memory, after that                  %8.1f MiB\n", c.residentMiB())
	if err := c.restart(ctx); err != nil {
		return err
	}
	fmt.Printf("start with %d deployments        %8.1f ms\n", stored, ms(c.ready))
	if err := c.awaitIdle(ctx); err != nil {
		return err
	}
	var next atomic.Int64
	one := func() string {
		return c.BaseURL + "/v2/deployments/" + deployments[int(next.Add(7919))%stored].ID
	}
	loads := []struct {
		what string
		op   func() error
	}{
		{"GET deployment", func() error { return c.discard(ctx, http.MethodGet, one(), nil) }},
		{"list of 100", func() error {
			return c.discard(ctx, http.MethodGet, c.BaseURL+"/v2/deployments?limit=100", nil)
		}},
		{"PATCH deploy.", func() error {
			url := one()
			// Another value each time, because an unchanged value causes no write.
			return c.discard(ctx, http.MethodPatch, url, map[string]any{
				"source_config": map[string]any{"custom_url": fmt.Sprintf("https://agent.example/%s/%d", url[strings.LastIndex(url, "/")+1:], next.Load())},
			})
		}},
	}
	for _, l := range loads {
		if err := measureRates(ctx, c, l.what, duration, l.op); err != nil {
			return err
		}
	}
	fmt.Printf("memory, with %d deployments      %8.1f MiB\n", stored, c.residentMiB())
	return nil
}

// awaitIdle waits until the server has nothing left to do: work after the end of a rollout
// would count as work of the requests.
func (c *client) awaitIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const look = time.Second
	for before := c.cpu(); ; {
		if !clock.Sleep(ctx, look) {
			return fmt.Errorf("the server is never idle: %w", ctx.Err())
		}
		now := c.cpu()
		if now-before < look/20 {
			return nil
		}
		before = now
	}
}

// outcome is a revision whose rollout is over.
type outcome struct {
	Status  string `json:"status"`
	Message string `json:"status_message"`
}

// awaitRollout waits until a rollout is over, by long polls.
func (c *client) awaitRollout(ctx context.Context, d rolledOut) (revision outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for err == nil && revision.Status != "DEPLOYED" && !strings.Contains(revision.Status, "FAILED") {
		err = c.call(ctx, http.MethodGet, c.BaseURL+"/v2/deployments/"+d.ID+"/revisions/"+d.LatestRevision+"?wait=20", nil, &revision)
	}
	return revision, err
}
