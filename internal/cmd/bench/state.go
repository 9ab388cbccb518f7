package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// sentence is the text of the messages that threads are filled with; a message has about 300
// bytes.
var sentence = strings.Repeat("The weather is fine today. ", 7)

// conversation makes a thread that holds the given number of messages.
func (c *client) conversation(ctx context.Context, agent string, messages int) (string, error) {
	thread, err := c.threadOf(ctx, agent, map[string]any{"metadata": map[string]any{"graph_id": "agent"}})
	if err != nil {
		return "", err
	}
	list := make([]any, messages)
	for i := range list {
		list[i] = map[string]any{"type": []string{"human", "ai"}[i%2], "id": fmt.Sprintf("message-%06d", i), "content": sentence}
	}
	return thread, c.discard(ctx, http.MethodPost, thread+"/state", map[string]any{"values": map[string]any{"messages": list}})
}

// measureState reads the states of a short and of a longer thread.
func measureState(ctx context.Context, c *client, url string, duration time.Duration) error {
	for _, load := range []struct {
		messages int
		aim      float64
	}{{2, 8000}, {100, 3000}} {
		thread, err := c.conversation(ctx, url, load.messages)
		if err != nil {
			return err
		}
		fmt.Printf("GET state of %d messages (aim > %.0f /s)\n", load.messages, load.aim)
		if err := measureRates(ctx, c, "GET state", duration, func() error { return c.discard(ctx, http.MethodGet, thread+"/state", nil) }); err != nil {
			return err
		}
	}
	return nil
}

// measureLongThreads makes runs on threads of different length, one after the other on each
// thread in turn, so that both threads meet the same disturbances.
func measureLongThreads(ctx context.Context, c *client, url string) error {
	const runs = 100
	lengths := []int{20, 2000}
	taken, server := make([][]time.Duration, len(lengths)), make([]time.Duration, len(lengths))
	threads := make([]string, len(lengths))
	for i, messages := range lengths {
		var err error
		if threads[i], err = c.conversation(ctx, url, messages); err != nil {
			return err
		}
	}
	for range runs {
		for i, thread := range threads {
			begun, before := time.Now(), c.cpu()
			if err := c.runAndDiscard(ctx, thread); err != nil {
				return err
			}
			taken[i] = append(taken[i], time.Since(begun))
			server[i] += c.cpu() - before
		}
	}
	for i, messages := range lengths {
		printTimes(fmt.Sprintf("run + join, thread of %d messages", messages), taken[i])
		fmt.Printf("%-36s     %7.2f ms of processor\n", "  the server's part", ms(server[i]/runs))
	}
	ratio := float64(percentile(taken[1], 50)) / float64(percentile(taken[0], 50))
	fmt.Printf("%-36s     %7.2f x (aim < 1.5) %s\n", "the longer to the shorter", ratio, missed(ratio >= 1.5))
	return nil
}

// runAndDiscard makes a run and waits for its values, without decoding them.
func (c *client) runAndDiscard(ctx context.Context, thread string) error {
	run, err := c.run(ctx, thread, question(0, nil))
	if err != nil {
		return err
	}
	return c.discard(ctx, http.MethodGet, run+"/join", nil)
}

// measureHistory reads ten states of a thread whose state is large.
func measureHistory(ctx context.Context, c *client, url string) error {
	for _, messages := range []int{20, 2000} {
		thread, err := c.conversation(ctx, url, messages)
		if err != nil {
			return err
		}
		for range 4 {
			if err := c.runAndDiscard(ctx, thread); err != nil {
				return err
			}
		}
		var taken []time.Duration
		for range 20 {
			begun := time.Now()
			if err := c.discard(ctx, http.MethodGet, thread+"/history?limit=10", nil); err != nil {
				return err
			}
			taken = append(taken, time.Since(begun))
		}
		printTimes(fmt.Sprintf("history of 10, %d messages", messages), taken)
	}
	return nil
}
