package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// streaming is a protocol in which clients read answers: the protocol of runs, or the
// thread-centric protocol.
type streaming struct {
	name string
	// open starts a run on a thread and streams it.
	open func(ctx context.Context, c *client, thread string, body map[string]any) (*http.Response, error)
	// isToken and isEnd read a line of the stream.
	isToken, isEnd func(line string) bool
}

var (
	byRun = streaming{
		name: "runs/stream",
		open: func(ctx context.Context, c *client, thread string, body map[string]any) (*http.Response, error) {
			body["stream_mode"], body["on_disconnect"] = "messages-tuple", "cancel"
			return c.post(ctx, thread+"/runs/stream", body)
		},
		isToken: func(line string) bool { return line == "event: messages" },
		isEnd:   func(string) bool { return false }, // the stream ends with the run
	}
	byThread = streaming{
		name: "stream/events",
		open: func(ctx context.Context, c *client, thread string, body map[string]any) (*http.Response, error) {
			var answer struct{ Type, Message string }
			if err := c.call(ctx, http.MethodPost, thread+"/commands", map[string]any{"id": 1, "method": "run.start", "params": body}, &answer); err != nil {
				return nil, err
			}
			if answer.Type != "success" {
				return nil, fmt.Errorf("run.start is refused: %s", answer.Message)
			}
			return c.post(ctx, thread+"/stream/events", map[string]any{"channels": []string{"messages", "lifecycle"}})
		},
		isToken: func(line string) bool { return strings.Contains(line, `"text-delta"`) },
		isEnd:   func(line string) bool { return strings.Contains(line, `"event":"completed"`) },
	}
)

// tokens streams an answer and calls each with every token of it.
func (c *client) tokens(ctx context.Context, by streaming, thread string, interval time.Duration, words int, each func()) error {
	body := question(int(interval/time.Millisecond), nil)
	body["config"].(map[string]any)["configurable"].(map[string]any)["answer_words"] = words
	response, err := by.open(ctx, c, thread, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if by.isToken(lines.Text()) {
			each()
		} else if by.isEnd(lines.Text()) {
			break
		}
	}
	return lines.Err()
}

// The answers that are read in each protocol: an answer as fast as it comes, and concurrent
// answers at the agent's pace.
const (
	fastWords  = 4000
	paced      = 50
	pacedEvery = 20 * time.Millisecond
	// aimDearer is the highest cost of the thread-centric protocol, relative to the protocol
	// of runs.
	aimDearer = 1.1
)

// cost is the measured cost of answers in a protocol.
type cost struct {
	tokens int
	took   time.Duration
	cpu    time.Duration
	delays []time.Duration
}

func (o cost) cpuPerToken() float64 { return float64(o.cpu) / float64(max(o.tokens, 1)) }

func (o cost) rate() float64 { return float64(o.tokens) / o.took.Seconds() }

// measureProtocols reads answers in both protocols in turns, so that other work of the machine
// affects both, and prints the ratios of their costs.
func measureProtocols(ctx context.Context, c *client, url string, duration time.Duration) error {
	costs := map[string]*cost{byRun.name: {}, byThread.name: {}}
	for begun := time.Now(); time.Since(begun) < 2*duration; {
		for _, by := range []streaming{byRun, byThread} {
			if err := costs[by.name].fast(ctx, c, url, by); err != nil {
				return err
			}
		}
	}
	var both errgroup.Group
	for _, by := range []streaming{byRun, byThread} {
		both.Go(func() error { return costs[by.name].paced(ctx, c, url, by, duration) })
	}
	if err := both.Wait(); err != nil {
		return err
	}
	for _, by := range []streaming{byRun, byThread} {
		of := costs[by.name]
		fmt.Printf("%-14s %8.0f tokens/s   server %6.1f µs of processor a token   later than the agent's pace p50 %.1f ms   p99 %.1f ms\n",
			by.name, of.rate(), of.cpuPerToken()/1000, ms(percentile(of.delays, 50)), ms(percentile(of.delays, 99)))
	}
	run, thread := costs[byRun.name], costs[byThread.name]
	slower, dearer := run.rate()/thread.rate(), thread.cpuPerToken()/run.cpuPerToken()
	fmt.Printf("%s beside %s: %.2f times the time, %.2f times the processor of a token (aim at most %.1f) %s\n",
		byThread.name, byRun.name, slower, dearer, aimDearer, missed(slower > aimDearer || dearer > aimDearer))
	return nil
}

// fast reads an answer without delays.
func (o *cost) fast(ctx context.Context, c *client, url string, by streaming) error {
	thread, err := c.thread(ctx, url)
	if err != nil {
		return err
	}
	before, begun := c.cpu(), time.Now()
	if err := c.tokens(ctx, by, thread, 0, fastWords, func() { o.tokens++ }); err != nil {
		return err
	}
	o.took += time.Since(begun)
	o.cpu += c.cpu() - before
	return nil
}

// paced reads answers concurrently, and notes how much later than the agent's pace the tokens
// come.
func (o *cost) paced(ctx context.Context, c *client, url string, by streaming, duration time.Duration) error {
	seen := make([][]time.Time, paced)
	var readers errgroup.Group
	for i := range seen {
		readers.Go(func() error {
			thread, err := c.thread(ctx, url)
			if err != nil {
				return err
			}
			return c.tokens(ctx, by, thread, pacedEvery, int(duration/pacedEvery), func() { seen[i] = append(seen[i], time.Now()) })
		})
	}
	if err := readers.Wait(); err != nil {
		return err
	}
	o.delays = delaysOf(seen, pacedEvery, func(time.Time) bool { return true })
	return nil
}
