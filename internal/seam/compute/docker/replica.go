package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
)

const (
	// outputLimit bounds the wait for the output of an ended container. removeLimit bounds the
	// removal of a container.
	outputLimit = 5 * time.Second
	removeLimit = time.Minute
	// logPause is the time between the end of a container that the engine starts again and the
	// next look at its output.
	logPause = time.Second
	// killLimit bounds the wait for an event that says why a container was killed: the engine makes
	// some of them only after the container has ended.
	killLimit = time.Second
)

// What is said of a container that ended for its memory, before the amount.
const (
	usedMemory = " because it used"
	wasKilled  = ", most likely because it used"
)

// running is one replica: the agent's container with the containers and volumes beside it.
type running struct {
	engine *engine
	pod    pod
	name   string
	output *files.Writer
	url    string
	memory int64
	agent  string
	// containers are all containers that were made, with the agent's among them. volumes are
	// shared between them.
	containers []string
	volumes    map[string]string

	// follow ends with the replica, and ends the readers of the containers' output.
	follow context.Context
	end    context.CancelFunc
	done   chan struct{}
	// copying counts the readers of the containers' output.
	copying sync.WaitGroup
	// exit says how the agent ended, and oom is usedMemory or wasKilled if it ended for its memory,
	// once done is closed.
	exit, oom string
}

// Start starts the containers of a replica in their order.
func (p prepared) Start(ctx context.Context) (replica.Replica, *compute.Status) {
	spec, e := p.spec, p.engine
	output, err := e.cfg.Logs.Writer(spec.Revision, revisionlog.Deploy, spec.SecretValues()...)
	if err != nil {
		return nil, replica.Failed(compute.ReasonStartFailed, "the agent could not be started: "+err.Error())
	}
	r := &running{engine: e, pod: p.pod, name: "slipway-" + spec.Revision + "-" + strings.ToLower(rand.Text()[:8]), output: output, done: make(chan struct{})}
	r.follow, r.end = context.WithCancel(context.Background())
	failure := r.start(ctx, e.has())
	if failure == nil {
		return r, nil
	}
	r.remove()
	if r.agent != "" {
		<-r.done
	}
	r.close()
	return nil, failure
}

// close ends the readers of the containers' output.
func (r *running) close() {
	r.end()
	r.copying.Wait()
	if err := r.output.Close(); err != nil {
		r.engine.cfg.Log.Error("write log", "revision", r.pod.spec.Revision, "error", err)
	}
}

func (r *running) start(ctx context.Context, within size) *compute.Status {
	err := r.engine.ready(ctx)
	if err != nil {
		return r.failed(err)
	}
	if r.volumes, err = r.engine.volumes(ctx, r.pod, r.name); err != nil {
		return r.failed(err)
	}
	for _, c := range r.pod.InitContainers {
		if failure := r.initialize(ctx, within, c); failure != nil {
			return failure
		}
	}
	agent := r.engine.agent(r.pod, within, mountsOf(r.pod.VolumeMounts, r.volumes))
	r.memory = agent.HostConfig.Memory
	agent.Name = r.name
	id, copied, err := r.launch(ctx, agent)
	if err != nil {
		return r.failed(err)
	}
	r.agent = id
	go guard.Func(r.engine.cfg.Log, "follow a container to its end", func() { r.watch(copied) })()
	seen, err := r.engine.client.ContainerInspect(ctx, r.agent, client.ContainerInspectOptions{})
	if err != nil {
		return r.failed(err)
	}
	for _, binding := range seen.Container.NetworkSettings.Ports[agentPort] {
		r.url = "http://127.0.0.1:" + binding.HostPort
	}
	for _, c := range r.pod.Sidecars {
		if !seen.Container.State.Running {
			break // Ended will say why
		}
		beside := r.engine.beside(r.pod, within, c, mountsOf(c.VolumeMounts, r.volumes), container.NetworkMode("container:"+r.agent))
		beside.Name = r.name + "-" + c.Name
		beside.HostConfig.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyAlways}
		if c.RestartPolicy == "OnFailure" {
			beside.HostConfig.RestartPolicy.Name = container.RestartPolicyOnFailure
		}
		if _, _, err := r.launch(ctx, beside); err != nil {
			return r.failed(fmt.Errorf("sidecar %s: %w", c.Name, err))
		}
	}
	return nil
}

// failed returns the status for an engine that has failed to do a request.
func (r *running) failed(err error) *compute.Status {
	if client.IsErrConnectionFailed(err) {
		return noEngine(err)
	}
	return replica.Failed(compute.ReasonStartFailed, "the agent could not be started: "+strings.TrimPrefix(err.Error(), "Error response from daemon: "))
}

// initialize runs an init container to its end.
func (r *running) initialize(ctx context.Context, within size, c containerSpec) *compute.Status {
	options := r.engine.beside(r.pod, within, c, mountsOf(c.VolumeMounts, r.volumes), container.NetworkMode(r.engine.network()))
	options.Name = r.name + "-" + c.Name
	id, copied, err := r.launch(ctx, options)
	if err != nil {
		return r.failed(fmt.Errorf("init container %s: %w", c.Name, err))
	}
	if err := r.await(ctx, id); err != nil {
		return r.failed(fmt.Errorf("init container %s: %w", c.Name, err))
	}
	awaitOutput(copied)
	how, oom, code, err := r.describe(id)
	if err != nil {
		return r.failed(fmt.Errorf("init container %s: %w", c.Name, err))
	}
	switch {
	case oom != "":
		return r.Failure(compute.ReasonOutOfMemory, fmt.Sprintf("the init container %s was ended%s more memory than it may", c.Name, oom))
	case code != 0:
		return r.Failure(compute.ReasonStartFailed, fmt.Sprintf("the init container %s %s", c.Name, how))
	}
	return nil
}

// launch creates a container, reads its output until copied is closed, and starts it. A
// container that cannot be started is removed with the replica. An engine continues to create
// a container after its caller has stopped waiting, so launch waits for the creation.
func (r *running) launch(ctx context.Context, options client.ContainerCreateOptions) (id string, copied <-chan struct{}, err error) {
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	created, err := r.engine.client.ContainerCreate(creating, options)
	if err != nil {
		return "", nil, err
	}
	r.containers = append(r.containers, created.ID)
	if options.HostConfig.RestartPolicy.IsNone() {
		copied, err = r.attach(created.ID)
	}
	if err == nil {
		_, err = r.engine.client.ContainerStart(ctx, created.ID, client.ContainerStartOptions{})
	}
	if err == nil && copied == nil {
		r.copying.Go(guard.Func(r.engine.cfg.Log, "copy output of a container", func() { r.copyLogs(created.ID) }))
	}
	return created.ID, copied, err
}

// attach writes the future output of a container into the log, until the container ends.
func (r *running) attach(id string) (copied <-chan struct{}, err error) {
	stream, err := r.engine.client.ContainerAttach(r.follow, id, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(r.follow, stream.Close)
	r.copying.Go(guard.Func(r.engine.cfg.Log, "copy output of a container", func() {
		defer close(done)
		err := r.record(stream.Reader)
		if stop() {
			stream.Close()
		}
		r.complain(err)
	}))
	return done, nil
}

// copyLogs writes the output of a container into the log, through all restarts of the
// container by the engine. The engine does not wait for logPause, so each look at the output begins
// with the time at which the earlier output ended.
func (r *running) copyLogs(id string) {
	since := ""
	for {
		out, err := r.engine.client.ContainerLogs(r.follow, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true, Since: since})
		if err == nil {
			err = r.record(out)
			since = time.Now().Format(time.RFC3339Nano)
			err = errors.Join(err, out.Close())
		}
		r.complain(err)
		if !clock.Sleep(r.follow, logPause) {
			return
		}
	}
}

// record writes the output of one container into the log. Lines of other containers, and of the
// container's error output, may come in the middle of a line.
func (r *running) record(from io.Reader) error {
	out, problems := r.output.Stream(), r.output.Stream()
	defer out.End()
	defer problems.End()
	_, err := stdcopy.StdCopy(out, problems, from)
	return err
}

// complain logs an error of reading output, unless the reading was told to end.
func (r *running) complain(err error) {
	if err != nil && r.follow.Err() == nil {
		r.engine.cfg.Log.Warn("read output of container", "revision", r.pod.spec.Revision, "error", err)
	}
}

// watch follows the agent to its end.
func (r *running) watch(copied <-chan struct{}) {
	defer close(r.done)
	if err := r.await(r.follow, r.agent); err != nil {
		r.exit = fmt.Sprintf("was lost with its container engine (%v)", err)
		return
	}
	awaitOutput(copied)
	var err error
	if r.exit, r.oom, _, err = r.describe(r.agent); err != nil {
		r.exit = fmt.Sprintf("ended, and its container engine does not say how (%v)", err)
	}
}

// await waits until a container has ended.
func (r *running) await(ctx context.Context, id string) error {
	wait := r.engine.client.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-wait.Result:
		return nil
	case err := <-wait.Error:
		return err
	}
}

// describe says how a container ended. If that was for its memory, oom is usedMemory or wasKilled.
func (r *running) describe(id string) (how, oom string, code int, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.follow), outputLimit)
	defer cancel()
	seen, err := r.engine.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return "", "", 0, err
	}
	state := seen.Container.State
	how = fmt.Sprintf("exited with code %d", state.ExitCode)
	sig := syscall.Signal(state.ExitCode - 128)
	if sig > 0 && sig < 32 {
		how = fmt.Sprintf("was ended by signal %d (%s)", int(sig), sig)
	}
	if state.Error != "" {
		how += " (" + state.Error + ")"
	}
	if state.OOMKilled {
		oom = usedMemory
	} else if sig == syscall.SIGKILL {
		oom = r.killed(ctx, id, state.StartedAt)
	}
	return how, oom, state.ExitCode, nil
}

// killed says whether a container that was killed had used too much memory: usedMemory, wasKilled
// if that is only most likely, or "". On a busy machine an engine can miss why the kernel killed a
// container: neither the container's state nor an event says it. But the engine has an event for
// each signal that it sends. So if a container has no event at all, most likely the kernel has
// killed it.
func (r *running) killed(ctx context.Context, id, started string) (oom string) {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	seen := r.engine.client.Events(ctx, client.EventsListOptions{
		Since: started, Filters: make(client.Filters).Add("container", id).Add("event", string(events.ActionOOM), string(events.ActionKill)),
	})
	for {
		select {
		case event := <-seen.Messages:
			if event.Action == events.ActionOOM {
				return usedMemory
			}
			if event.Actor.Attributes["signal"] == strconv.Itoa(int(syscall.SIGKILL)) {
				return ""
			}
		case err := <-seen.Err:
			if ctx.Err() != nil {
				return wasKilled
			}
			r.engine.cfg.Log.Warn("read events of container", "revision", r.pod.spec.Revision, "error", err)
			return ""
		}
	}
}

func awaitOutput(copied <-chan struct{}) {
	select {
	case <-copied:
	case <-time.After(outputLimit):
	}
}

// URL is where the agent's port is published.
func (r *running) URL() string { return r.url }

// Done is closed when the agent's container has ended.
func (r *running) Done() <-chan struct{} { return r.done }

// Ended says why the agent's container ended.
func (r *running) Ended(before bool) *compute.Status {
	when := ""
	if before {
		when = " before it answered GET /ping"
	}
	if r.oom != "" {
		what := fmt.Sprintf("the agent was ended%s%s more than the %d MB of memory that it may", when, r.oom, r.memory>>20)
		if len(r.pod.spec.ResourceSpec) > 0 {
			what += " (resource_spec.memory_limit_mb)"
		}
		return r.Failure(compute.ReasonOutOfMemory, what)
	}
	reason := compute.ReasonEnded
	if before {
		reason = compute.ReasonStartFailed
	}
	return r.Failure(reason, "the agent "+r.exit+when)
}

// Failure is a status with the containers' last output.
func (r *running) Failure(reason, what string) *compute.Status {
	return replica.Failed(reason, replica.Said(what, r.output.Last()))
}

// End stops the agent, then removes its container and everything beside it.
func (r *running) End(kill context.Context) {
	grace := int(r.engine.cfg.StopGrace.Round(time.Second).Seconds())
	if _, err := r.engine.client.ContainerStop(kill, r.agent, client.ContainerStopOptions{Timeout: &grace}); ignoreGone(err) != nil && kill.Err() == nil {
		r.engine.cfg.Log.Error("stop container", "revision", r.pod.spec.Revision, "error", err)
	}
	r.remove()
	<-r.done
	r.close()
}

// remove removes every container and volume of the replica from the engine. The parts that
// cannot be removed now are removed before the next replica, with the release, or by the next
// server: an engine may keep its containers running while it does not answer.
func (r *running) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	volumes := slices.Collect(maps.Values(r.volumes))
	if failed := r.engine.remove(ctx, r.containers, volumes); failed != nil {
		r.engine.leaveBehind(r.containers, volumes)
		r.engine.cfg.Log.Error("remove containers", "revision", r.pod.spec.Revision, "error", failed)
		r.end() // so that no goroutine waits for the end of a container that cannot be ended
	}
}
