package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/clock"
)

// Labels of everything that the target makes.
const (
	labelPrefix     = "slipway."
	labelServer     = labelPrefix + "server"
	labelWorkspace  = labelPrefix + "workspace"
	labelDeployment = labelPrefix + "deployment"
	labelRevision   = labelPrefix + "revision"
	// labelRole is agent, or the name of an init container or sidecar.
	labelRole = labelPrefix + "role"
)

const (
	// sweepLimit bounds the removal of an earlier server's containers, volumes and networks.
	sweepLimit = time.Minute
	// networkLimit bounds the wait for the last container to leave a network.
	networkLimit = 5 * time.Second
	// engineRetry is the pause before an engine that does not answer is asked again.
	engineRetry = 200 * time.Millisecond
)

// remains are containers and volumes of ended replicas that the engine still has.
type remains struct{ containers, volumes []string }

// size is the most that an engine has for one container.
type size struct {
	cpus   int
	memory int64
}

// network is the name of the network of the server's containers. The containers cannot reach
// each other in it.
func (e *engine) network() string { return "slipway-" + e.server }

// meet makes sure that the engine answers, and has nothing left of an earlier server of this name.
// Concurrent callers wait together.
func (e *engine) meet(ctx context.Context) error {
	for giveUp := time.Now().Add(e.cfg.EngineLimit); ; {
		met := e.meetings.DoChan("", func() (any, error) { return nil, e.greet() })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case outcome := <-met:
			// This caller may have joined a wait that another release began much earlier, so
			// it may have waited too little.
			if outcome.Err == nil || e.closing.Err() != nil || time.Now().After(giveUp) {
				return outcome.Err
			}
		}
	}
}

// greet does the work of meet once for all waiting callers.
func (e *engine) greet() error {
	ctx, cancel := context.WithTimeout(e.closing, e.cfg.EngineLimit+sweepLimit)
	defer cancel()
	info, err := e.client.Info(ctx, client.InfoOptions{})
	for giveUp := time.Now().Add(e.cfg.EngineLimit); err != nil && time.Now().Before(giveUp) && clock.Sleep(ctx, engineRetry); {
		info, err = e.client.Info(ctx, client.InfoOptions{})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err = cmp.Or(err, ctx.Err()); err != nil || e.size != nil {
		return err
	}
	if err := errors.Join(e.keepName(), e.sweepAll(ctx)); err != nil {
		return err
	}
	e.size = &size{info.Info.NCPU, info.Info.MemTotal}
	return nil
}

// ready prepares the engine for a replica. It removes what earlier replicas had to leave, and makes
// the server's network unless it is there: operators remove networks that no container uses.
func (e *engine) ready(ctx context.Context) error {
	// The engine may take its time for the list, and most calls find the network in it.
	networks, err := e.networks(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err = cmp.Or(e.closing.Err(), err); err != nil {
		return err
	}
	if err := e.remove(ctx, e.left.containers, e.left.volumes); err == nil {
		e.left = remains{}
	} else {
		e.cfg.Log.Warn("what earlier replicas have left cannot be removed", "error", err)
	}
	if len(networks) > 0 {
		return nil
	}
	// Another replica may have made it meanwhile.
	if networks, err = e.networks(ctx); err != nil || len(networks) > 0 {
		return err
	}
	// An engine continues to create a network after its caller has stopped waiting.
	creating, stop := context.WithTimeout(context.WithoutCancel(ctx), sweepLimit)
	defer stop()
	_, err = e.client.NetworkCreate(creating, e.network(), client.NetworkCreateOptions{
		Driver: "bridge", Labels: map[string]string{labelServer: e.server},
		Options: map[string]string{"com.docker.network.bridge.enable_icc": "false"},
	})
	if err != nil && !errdefs.IsConflict(err) {
		return fmt.Errorf("create network: %w", err)
	}
	return nil
}

// leaveBehind notes what is left of a replica.
func (e *engine) leaveBehind(containers, volumes []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left.containers, e.left.volumes = append(e.left.containers, containers...), append(e.left.volumes, volumes...)
}

// networks are the server's networks. They are found by their label, because an engine may have
// several networks of one name.
func (e *engine) networks(ctx context.Context) ([]network.Summary, error) {
	list, err := e.client.NetworkList(ctx, client.NetworkListOptions{Filters: make(client.Filters).Add("label", labelServer+"="+e.server)})
	return list.Items, err
}

// leave removes everything that the server has at the engine, if the server ever met the
// engine. After that, the server never meets it again.
func (e *engine) leave() error {
	e.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.size == nil {
		return nil
	}
	e.size = nil
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	defer cancel()
	if err := e.sweepAll(ctx); err != nil {
		return fmt.Errorf("leave container engine: %w", err)
	}
	return nil
}

// sweepAll removes everything that the server ever made.
func (e *engine) sweepAll(ctx context.Context) error {
	if err := e.sweep(ctx, labelServer+"="+e.server); err != nil {
		return err
	}
	networks, err := e.networks(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, n := range networks {
		failed = errors.Join(failed, e.removeNetwork(ctx, n.ID))
	}
	return failed
}

// removeNetwork tries for a moment, because a removed container may still be leaving the
// network.
func (e *engine) removeNetwork(ctx context.Context, network string) error {
	for giveUp := time.Now().Add(networkLimit); ; {
		_, err := e.client.NetworkRemove(ctx, network, client.NetworkRemoveOptions{})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if time.Now().After(giveUp) || !clock.Sleep(ctx, engineRetry) {
			return err
		}
	}
}

// sweep removes the containers and volumes that have a label.
func (e *engine) sweep(ctx context.Context, label string) error {
	filters := make(client.Filters).Add("label", labelServer+"="+e.server).Add("label", label)
	containers, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return err
	}
	volumes, err := e.client.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return err
	}
	var ids, names []string
	for _, c := range containers.Items {
		ids = append(ids, c.ID)
	}
	for _, v := range volumes.Items {
		names = append(names, v.Name)
	}
	return e.remove(ctx, ids, names)
}

// remove removes containers, and volumes after them.
func (e *engine) remove(ctx context.Context, containers, volumes []string) (failed error) {
	for _, id := range containers {
		_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		failed = errors.Join(failed, ignoreGone(err))
	}
	for _, name := range volumes {
		_, err := e.client.VolumeRemove(ctx, name, client.VolumeRemoveOptions{Force: true})
		failed = errors.Join(failed, ignoreGone(err))
	}
	return failed
}

// ignoreGone is nil for an error that says that a resource is gone already, or that another
// call is removing it.
func ignoreGone(err error) error {
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return err
}
