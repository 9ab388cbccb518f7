package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/slipway-run/slipway/internal/base/clock"
)

const (
	// waitingRuns are in one process of the runner at once, as many as the template gives a process
	// on a managed instance.
	waitingRuns = 256
	// The target costs of runs whose agent says nothing: memory of one, processor of all.
	aimWaitingMiB = 0.5
	aimWaitingCPU = 0.01
	// settleTime is how long they are left alone first: for 20 s after the last of them has begun,
	// the first events of many are still written, and their watched keys are read often.
	settleTime = 30 * time.Second
	// waitingTime is how long they are watched then: each renews its lease in that time, which it
	// does each 105 s.
	waitingTime = 105 * time.Second
)

// measureWaiting measures the runner on a managed instance: how much memory and processor time its
// process takes for runs that wait for their agent.
func (b stackBench) measureWaiting(ctx context.Context, work string) error {
	args := []string{
		"lambda", "--build", b.functions, "--parameter", "RunnerCompute=managed", "--parameter", "ManagedProcesses=1", "--quota", "runs_at_once=1000",
	}
	source := filepath.Join(work, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		return err
	}
	return on(ctx, filepath.Join(work, "waiting"), b.local, args, func(c *client, data string) error { return b.watchWaiting(ctx, c, data, source) })
}

func (b stackBench) watchWaiting(ctx context.Context, c *client, data, source string) error {
	url, err := c.deploy(ctx, "waiting", b.agent, source)
	if err != nil {
		return err
	}
	thread, err := c.thread(ctx, url)
	if err != nil {
		return err
	}
	if err := c.runAndJoin(ctx, thread); err != nil { // it starts the process
		return err
	}
	pid, err := functionProcess("ManagedRunner", filepath.Join(data, "tmp"))
	if err != nil {
		return err
	}
	idle := residentMiB(pid)
	runs := make(chan string, waitingRuns)
	if err := concurrently(8, waitingRuns, func() error {
		run, err := c.waitingRun(ctx, url)
		runs <- run
		return err
	}); err != nil {
		return err
	}
	close(runs)
	for run := range runs {
		if err := c.awaitStatus(ctx, run, "running", 20*time.Millisecond); err != nil {
			return err
		}
	}
	if !clock.Sleep(ctx, settleTime) {
		return context.Cause(ctx)
	}
	before, begun := cpuOf(pid), time.Now()
	if !clock.Sleep(ctx, waitingTime) {
		return context.Cause(ctx)
	}
	busy := (cpuOf(pid) - before).Seconds() / time.Since(begun).Seconds()
	each := (residentMiB(pid) - idle) / waitingRuns
	if now, err := functionProcess("ManagedRunner", filepath.Join(data, "tmp")); err != nil || now != pid {
		return fmt.Errorf("the runs are in the process %d, and not in %d: %w", now, pid, err)
	}
	fmt.Printf("%d runs that wait, in one process: %.2f MiB each (aim < %.1f) %s beside %.0f MiB without runs; %.1f %% of a processor together (aim < %.0f %%) %s\n",
		waitingRuns, each, aimWaitingMiB, missed(each >= aimWaitingMiB), idle, 100*busy, 100*aimWaitingCPU, missed(busy >= aimWaitingCPU))
	return nil
}

// waitingRun creates a run on a new thread whose agent is silent for ten minutes, and returns its
// URL.
func (c *client) waitingRun(ctx context.Context, url string) (string, error) {
	thread, err := c.thread(ctx, url)
	if err != nil {
		return "", err
	}
	body := question(0, map[string]any{"config": map[string]any{"configurable": map[string]any{"node_delay_ms": 600_000}}})
	return c.run(ctx, thread, body)
}

// awaitStatus waits until a run has a status. A run that ends with another status is an error.
func (c *client) awaitStatus(ctx context.Context, url, want string, pause time.Duration) error {
	for {
		var run struct{ Status string }
		if err := c.call(ctx, http.MethodGet, url, nil, &run); err != nil {
			return err
		}
		switch run.Status {
		case want:
			return nil
		case "pending", "running":
			time.Sleep(pause)
		default:
			return fmt.Errorf("run %s is %s, and not %s", url, run.Status, want)
		}
	}
}

// functionProcess finds the only process of a function of the stack whose temporary directory is
// temp.
func functionProcess(name, temp string) (int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	var pids []int
	for _, process := range processes {
		// A process that has ended, or is another user's, has no environment.
		environment, _ := process.Environ()
		if slices.Contains(environment, "AWS_LAMBDA_FUNCTION_NAME="+name) && slices.Contains(environment, "TMPDIR="+temp) {
			pids = append(pids, process.PID)
		}
	}
	if len(pids) != 1 {
		return 0, fmt.Errorf("the function %s has the processes %v, want one process", name, pids)
	}
	return pids[0], nil
}
