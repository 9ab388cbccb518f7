package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// tableLatency and keyLatency are what DynamoDB and KMS take for a request, nearly.
	tableLatency, keyLatency = "5ms", "15ms"
	// coldStarts is how often the first call is measured.
	coldStarts = 10
)

// measureCold measures what the first call of new processes waits for, with services that take as
// long as those of AWS. It is GET /v2/deployments, because API Gateway keeps no answer of the
// authorizer for it.
func (b stackBench) measureCold(ctx context.Context, work string) error {
	args := []string{"lambda", "--build", b.functions, "--table-latency", tableLatency, "--key-latency", keyLatency}
	return on(ctx, filepath.Join(work, "cold"), b.local, args, func(c *client, data string) error { return watchCold(ctx, c, filepath.Join(data, "tmp")) })
}

// watchCold ends the processes of both functions before each first call.
func watchCold(ctx context.Context, c *client, temp string) error {
	if _, err := callTwice(ctx, c); err != nil { // it starts the processes
		return err
	}
	var first, second []time.Duration
	for range coldStarts {
		for _, name := range []string{"Authorizer", "Deployments"} {
			if err := endFunction(name, temp); err != nil {
				return err
			}
		}
		taken, err := callTwice(ctx, c)
		if err != nil {
			return err
		}
		first, second = append(first, taken[0]), append(second, taken[1])
	}
	fmt.Printf("DynamoDB takes %s, KMS %s:\n", tableLatency, keyLatency)
	printTimes("GET /v2/deployments, new processes", first)
	printTimes("GET /v2/deployments, the same again", second)
	return nil
}

// endFunction ends the only process of a function, and waits until it has ended.
func endFunction(name, temp string) error {
	pid, err := functionProcess(name, temp)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	for syscall.Kill(pid, 0) == nil {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// callTwice makes the call twice, and returns how long each took.
func callTwice(ctx context.Context, c *client) (taken [2]time.Duration, err error) {
	for i := range taken {
		begun := time.Now()
		var list any
		if err := c.call(ctx, http.MethodGet, c.BaseURL+"/v2/deployments", nil, &list); err != nil {
			return taken, err
		}
		taken[i] = time.Since(begun)
	}
	return taken, nil
}
