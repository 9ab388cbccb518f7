package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/child"
	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

// agent is one process of a release.
type agent struct {
	process *child.Process
	output  *revisionlog.Writer
	url     string
}

// start runs the agent and returns it once it is healthy, or says why it is not. Of an agent that failed nothing is left.
func (r *release) start() (*agent, *compute.Status) {
	port, failure := choosePort(r.spec)
	if failure != nil {
		return nil, failure
	}
	a, err := r.launch(port)
	if err != nil {
		return nil, failed(compute.ReasonStartFailed, "the agent could not be started: %v", err)
	}
	ready, cancel := context.WithTimeout(r.ctx, r.target.cfg.ReadyLimit)
	defer cancel()
	lastAnswer := r.target.awaitPing(ready, a)
	if lastAnswer == nil {
		return a, nil
	}
	select {
	case <-a.process.Done():
		r.close(a)
		return nil, a.describeEarlyEnd(port)
	default:
	}
	r.end(a)
	if r.ctx.Err() != nil {
		return nil, &stopping
	}
	return nil, a.failure(compute.ReasonNotReady, fmt.Sprintf("the agent did not answer GET %s/ping with 200 within %s (%v)",
		a.url, r.target.cfg.ReadyLimit, lastAnswer))
}

// launch starts the process of the release on the port.
func (r *release) launch(port string) (*agent, error) {
	dir := r.target.dirOf(r.spec.Revision)
	for _, name := range []string{homeDir, tempDir} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	output, err := r.target.cfg.Logs.Writer(r.spec.Revision, revisionlog.Deploy, secretsOf(r.spec)...)
	if err != nil {
		return nil, err
	}
	process, err := r.target.children.Start(child.Command{
		Args:   r.spec.Artifact.Start,
		Dir:    r.spec.Artifact.Dir,
		Env:    environment(r.spec, dir, port),
		Stdout: output,
	})
	if err != nil {
		return nil, errors.Join(err, output.Close())
	}
	return &agent{process: process, output: output, url: "http://" + address(port)}, nil
}

// end stops an agent.
func (r *release) end(a *agent) {
	if err := a.process.Stop(r.target.kill, r.target.cfg.StopGrace); err != nil {
		r.target.cfg.Log.Error("stop agent", "revision", r.spec.Revision, "error", err)
	}
	r.close(a)
}

// close reports what went wrong behind the back of an agent that has ended.
func (r *release) close(a *agent) {
	_, err := a.process.Exit()
	if err = errors.Join(err, a.output.Close()); err != nil {
		r.target.cfg.Log.Error("run agent", "revision", r.spec.Revision, "error", err)
	}
}

// exit says how an agent that is done ended; its errors are reported by close.
func (a *agent) exit() child.Exit {
	exit, _ := a.process.Exit()
	return exit
}

// describeEarlyEnd says why an agent ended before it was healthy.
func (a *agent) describeEarlyEnd(port string) *compute.Status {
	what := fmt.Sprintf("the agent %s before it answered GET /ping", a.exit())
	if complainsOfAddress(a.output.Last()) || isTaken(port) {
		return a.failure(compute.ReasonPortTaken, fmt.Sprintf("%s: the address %s is in use by another process", what, address(port)))
	}
	return a.failure(compute.ReasonStartFailed, what)
}

// failure is a status with the agent's last words.
func (a *agent) failure(reason, what string) *compute.Status {
	last := a.output.Last()
	if last == "" {
		return failed(reason, "%s. It printed nothing.", what)
	}
	return failed(reason, "%s. Its last output:\n%s", what, last)
}

func failed(reason, format string, args ...any) *compute.Status {
	return &compute.Status{State: compute.Failed, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
