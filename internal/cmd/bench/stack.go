package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// aimOverhead is the target cost of the way through API Gateway and the Runtime API on this
// machine, in addition to the cost of the handler alone.
const aimOverhead = time.Millisecond

// stackBench measures the AWS stack.
type stackBench struct {
	binary, local, functions, agent string
	// only holds the names of the measurements to make, separated by commas; "" means all.
	only     string
	duration time.Duration
}

func (b stackBench) run(ctx context.Context) error {
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	return measureOnly(b.only, []measurement{
		{"functions", func() error { return measureFunctions(ctx, b.functions) }},
		{"way", func() error { return b.measureWay(ctx, work) }},
		{"cold", func() error { return b.measureCold(ctx, work) }},
		{"waiting", func() error { return b.measureWaiting(ctx, work) }},
	})
}

// measureWay measures the way of requests and runs through the functions.
func (b stackBench) measureWay(ctx context.Context, work string) error {
	plain, err := b.measurePlain(ctx, work)
	if err != nil {
		return err
	}
	args := []string{"lambda", "--build", b.functions}
	return on(ctx, filepath.Join(work, "way"), b.local, args, func(c *client, _ string) error { return b.measureStack(ctx, c, work, plain) })
}

// on starts a server with its own data directory and stops it afterwards.
func on(ctx context.Context, data, binary string, args []string, measure func(c *client, data string) error) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	s, err := startServer(ctx, binary, data, args...)
	if err != nil {
		return err
	}
	return errors.Join(measure(newClient(s), data), s.stop())
}

// measurePlain returns how long the one-machine server takes for a request that accesses no
// data.
func (b stackBench) measurePlain(ctx context.Context, work string) (taken time.Duration, err error) {
	err = on(ctx, filepath.Join(work, "plain"), b.binary, nil, func(c *client, _ string) error {
		taken, err = b.measureOK(ctx, c, "GET /ok, one-machine server")
		return err
	})
	return taken, err
}

// measureOK measures GET /ok, which needs no key and accesses no data, and returns the median.
func (b stackBench) measureOK(ctx context.Context, c *client, what string) (time.Duration, error) {
	get := func() error { return answers(ctx, c.BaseURL+"/ok") }
	if _, err := load(ctx, 1, time.Second, get); err != nil { // warm
		return 0, err
	}
	taken, err := load(ctx, 1, b.duration, get)
	if err != nil {
		return 0, err
	}
	printTimes(what, taken)
	return percentile(taken, 50), nil
}

func (b stackBench) measureStack(ctx context.Context, c *client, work string, plain time.Duration) error {
	fmt.Printf("%-36s %11.2f s\n", "server start to ready, all of it", c.ready.Seconds())
	taken, err := b.measureOK(ctx, c, "GET /ok, function")
	if err != nil {
		return err
	}
	fmt.Printf("%-36s p50 %7.2f ms   (aim < %s) %s\n", "what the function's way costs", ms(taken-plain), aimOverhead, missed(taken-plain >= aimOverhead))
	url, err := c.deploy(ctx, "bench", b.agent, work)
	if err != nil {
		return err
	}
	if err := b.measureFirstToken(ctx, c, url); err != nil {
		return err
	}
	for _, clients := range []int{1, 16} {
		threads, err := makeThreads(ctx, c, url, 50*int(b.duration.Seconds()))
		if err != nil {
			return err
		}
		if err := measureRate(ctx, c, "run + join", clients, b.duration, func() error { return b.runAndJoin(ctx, c, url, threads) }); err != nil {
			return err
		}
	}
	return nil
}

// runAndJoin makes a run on an existing thread, as long as there is a thread left.
func (b stackBench) runAndJoin(ctx context.Context, c *client, url string, threads <-chan string) (err error) {
	thread, ok := <-threads
	if !ok {
		if thread, err = c.thread(ctx, url); err != nil {
			return err
		}
	}
	return c.runAndJoin(ctx, thread)
}

// measureFirstToken creates runs one after the other, each on a new thread, and measures the
// time until the agent's first token arrives.
func (b stackBench) measureFirstToken(ctx context.Context, c *client, url string) error {
	const warm = 5 // the first runs start processes
	var taken []time.Duration
	for begun := time.Now(); time.Since(begun) < b.duration || len(taken) < 100+warm; {
		thread, err := c.thread(ctx, url)
		if err != nil {
			return err
		}
		took, err := firstToken(ctx, c, thread)
		if err != nil {
			return err
		}
		taken = append(taken, took)
	}
	printTimes("POST run to first token", taken[warm:])
	return nil
}

func firstToken(ctx context.Context, c *client, thread string) (time.Duration, error) {
	begun := time.Now()
	response, err := c.post(ctx, thread+"/runs/stream", question(0, map[string]any{"stream_mode": "messages-tuple"}))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if err := awaitEvents(response, "messages", 1); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	// The next run must find the processes free.
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	return took, nil
}
