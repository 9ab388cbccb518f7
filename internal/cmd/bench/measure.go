package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// oneMachine measures a one-machine server.
type oneMachine struct {
	binary, agent string
	// only holds the names of the measurements to make, separated by commas; "" means all.
	only string
	// profile is the file for a profile of the server; "" means no profile.
	profile  string
	duration time.Duration
}

func (m oneMachine) run(ctx context.Context) error {
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	data := work + "/data"
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := measureMachine(ctx, work, m.duration); err != nil {
		return err
	}
	if err := measureStart(ctx, m.binary, data); err != nil {
		return err
	}
	// One workspace sends all of the load.
	s, err := startServer(ctx, m.binary, data, "serve", "--cpu-profile", m.profile, "--quota", "requests_per_second=1000000")
	if err != nil {
		return err
	}
	c := newClient(s)
	url, err := c.deploy(ctx, "bench", m.agent, work)
	if err == nil {
		err = measureLoads(ctx, c, url, m.only, m.duration)
	}
	return errors.Join(err, s.stop())
}

// measureStart starts the server several times on the same directory.
func measureStart(ctx context.Context, binary, data string) error {
	var ready []time.Duration
	for range 7 {
		s, err := startServer(ctx, binary, data)
		if err != nil {
			return err
		}
		ready = append(ready, s.ready)
		if len(ready) == 7 {
			fmt.Printf("memory, idle                        %8.1f MiB\n", s.residentMiB())
		}
		if err := s.stop(); err != nil {
			return err
		}
	}
	printTimes("server start to ready", ready)
	return nil
}

// overhead is the measurement that is only made if it is named, because it needs the framework's
// own servers.
const overhead = "overhead"

// measureLoads makes the measurements of a deployed agent, or only the named measurements.
func measureLoads(ctx context.Context, c *client, url, only string, duration time.Duration) error {
	return measureOnly(only, []measurement{
		{"threads", func() error { return measureThreads(ctx, c, url, duration) }},
		{"runs", func() error { return measureRuns(ctx, c, url, duration) }},
		{"interrupts", func() error { return measureInterrupts(ctx, c, url) }},
		{"state", func() error { return measureState(ctx, c, url, duration) }},
		{"long", func() error { return measureLongThreads(ctx, c, url) }},
		{"history", func() error { return measureHistory(ctx, c, url) }},
		{"endurance", func() error { return measureEndurance(ctx, c, url, duration) }},
		{"streams", func() error { return measureStreams(ctx, c, url, 2*duration) }},
		{"protocols", func() error { return measureProtocols(ctx, c, url, duration) }},
		{"hostile", func() error { return measureHostile(ctx, c) }},
		{"deployments", func() error { return measureDeployments(ctx, c, duration) }},
		{overhead, func() error { return measureOverhead(ctx, c, 4*duration) }},
	})
}

// measurement is a measurement with its name.
type measurement struct {
	name    string
	measure func() error
}

// measureOnly makes the measurements whose names, separated by commas, are in only. If only is "",
// it makes all but overhead.
func measureOnly(only string, measurements []measurement) error {
	for _, measurement := range measurements {
		if only == "" && measurement.name == overhead || only != "" && !slices.Contains(strings.Split(only, ","), measurement.name) {
			continue
		}
		if err := measurement.measure(); err != nil {
			return fmt.Errorf("measure %s: %w", measurement.name, err)
		}
	}
	return nil
}

func measureThreads(ctx context.Context, c *client, url string, duration time.Duration) error {
	return measureRates(ctx, c, "POST /threads", duration, func() error {
		_, err := c.thread(ctx, url)
		return err
	})
}

func measureRuns(ctx context.Context, c *client, url string, duration time.Duration) error {
	fmt.Println("run + join (aims: p50 < 4 ms with 1 client, > 1500 /s with 64)")
	for _, clients := range []int{1, 64} {
		wanted := int(duration.Seconds()) * 600
		if clients > 1 {
			wanted = int(duration.Seconds()) * 4000
		}
		threads, err := makeThreads(ctx, c, url, wanted)
		if err != nil {
			return err
		}
		if err := measureRate(ctx, c, "run + join", clients, duration, func() error { return c.runAndJoin(ctx, <-threads) }); err != nil {
			return err
		}
	}
	return nil
}

// makeThreads makes threads; for a load more than it can use, so that each run has a new thread.
func makeThreads(ctx context.Context, c *client, url string, wanted int) (<-chan string, error) {
	threads := make(chan string, wanted)
	defer close(threads)
	return threads, concurrently(16, wanted, func() error {
		thread, err := c.thread(ctx, url)
		threads <- thread
		return err
	})
}

// concurrently calls op n times from a number of clients, and returns the first error.
func concurrently(clients, n int, op func() error) error {
	var group errgroup.Group
	group.SetLimit(clients)
	for range n {
		group.Go(op)
	}
	return group.Wait()
}

// load calls op from a number of clients for a time, and returns how long each call took.
func load(ctx context.Context, clients int, duration time.Duration, op func() error) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	all := make([][]time.Duration, clients)
	var group errgroup.Group
	for i := range clients {
		group.Go(func() error {
			for ctx.Err() == nil {
				begun := time.Now()
				if err := op(); err != nil {
					return err
				}
				all[i] = append(all[i], time.Since(begun))
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.Concat(all...), err
}

// measureInterrupts interrupts runs whose answer is being written, one after the other.
func measureInterrupts(ctx context.Context, c *client, url string) error {
	var final, first []time.Duration
	for range 200 {
		f, e, err := interrupt(ctx, c, url)
		if err != nil {
			return err
		}
		final, first = append(final, f), append(first, e)
	}
	printTimes("interrupt: POST to old run final", final)
	fmt.Printf("%-36s p50 %7d ms   p99 %7d ms\n", "  (aims)", 2, 10)
	printTimes("interrupt: POST to new run's event", first)
	fmt.Printf("%-36s p50 %7d ms   p99 %7d ms\n", "  (aims)", 5, 25)
	return nil
}

// interrupt returns how long it took, from the POST of the second run, until a join of the first
// returned and until the second's first event came.
func interrupt(ctx context.Context, c *client, url string) (final, first time.Duration, err error) {
	thread, err := c.thread(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	//nolint:bodyclose // closed below; the linter takes it for another one
	old, err := c.post(ctx, thread+"/runs/stream", question(20, map[string]any{"stream_mode": "messages-tuple"}))
	if err != nil {
		return 0, 0, err
	}
	defer old.Body.Close()
	if err := awaitEvents(old, "messages", 3); err != nil {
		return 0, 0, err
	}
	joined := make(chan error, 1)
	var ended time.Time
	waiting := make(chan struct{})
	go func() {
		close(waiting)
		var values any
		err := c.call(ctx, http.MethodGet, thread[:strings.LastIndex(thread, "/threads/")]+old.Header.Get("Content-Location")+"/join", nil, &values)
		ended = time.Now()
		joined <- err
	}()
	<-waiting
	time.Sleep(5 * time.Millisecond) // so that the join reaches the server
	begun := time.Now()
	next, err := c.post(ctx, thread+"/runs/stream",
		question(0, map[string]any{"stream_mode": "messages-tuple", "multitask_strategy": "interrupt"}))
	if err != nil {
		return 0, 0, err
	}
	defer next.Body.Close()
	if err := awaitEvents(next, "metadata", 1); err != nil {
		return 0, 0, err
	}
	first = time.Since(begun)
	err = <-joined
	return ended.Sub(begun), first, err
}

// awaitEvents reads a stream up to the n-th event of a name.
func awaitEvents(response *http.Response, name string, n int) error {
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if lines.Text() == "event: "+name {
			if n--; n == 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("the stream ended before its %q event: %w", name, lines.Err())
}

// measureRates is measureRate with one client and with many.
func measureRates(ctx context.Context, c *client, what string, duration time.Duration, op func() error) error {
	for _, clients := range []int{1, 64} {
		if err := measureRate(ctx, c, what, clients, duration, op); err != nil {
			return err
		}
	}
	return nil
}

// measureRate prints how often op succeeds, how long it takes, and how much processor time the
// server spends on each.
func measureRate(ctx context.Context, c *client, what string, clients int, duration time.Duration, op func() error) error {
	before := c.cpu()
	taken, err := load(ctx, clients, duration, op)
	if err != nil {
		return err
	}
	cpu := (c.cpu() - before) / time.Duration(max(len(taken), 1))
	slices.Sort(taken)
	fmt.Printf("%-14s %2d clients %8.0f /s   p50 %7.2f ms   p99 %7.2f ms   server %6.3f ms of processor\n", what, clients,
		float64(len(taken))/duration.Seconds(), ms(percentile(taken, 50)), ms(percentile(taken, 99)), ms(cpu))
	return nil
}

func printTimes(what string, taken []time.Duration) {
	slices.Sort(taken)
	fmt.Printf("%-36s p50 %7.2f ms   p99 %7.2f ms\n", what, ms(percentile(taken, 50)), ms(percentile(taken, 99)))
}

func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
