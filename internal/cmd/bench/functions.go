package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/test/template"
)

// The target costs of a function. They are aims; missing them is no failure.
const (
	aimSize  = 12.0 // MB
	aimStart = 30 * time.Millisecond
)

// starts is how often each function is started.
const starts = 20

// measureFunctions prints, for each function of the template, the size of its program and how long
// it takes until it asks for its first call.
func measureFunctions(ctx context.Context, dir string) error {
	read, err := template.Load("template.yaml")
	if err != nil {
		return err
	}
	stack, err := read.Resolve(template.Values{StackName: "slipway", Region: "us-east-1", Account: "000000000000"})
	if err != nil {
		return err
	}
	fmt.Printf("%-14s %18s %30s %34s\n", "function", "size", "start to first poll", "of it package inits")
	fmt.Printf("%-14s %18s %30s\n", "", fmt.Sprintf("(aim < %.0f MB)", aimSize), fmt.Sprintf("(median of %d, aim < %s)", starts, aimStart))
	for _, name := range slices.Sorted(maps.Keys(stack.Functions)) {
		f := stack.Functions[name]
		bootstrap := filepath.Join(dir, filepath.Base(f.CodeURI), "bootstrap")
		info, err := os.Stat(bootstrap)
		if err != nil {
			return fmt.Errorf("the function is not built (make functions): %w", err)
		}
		started, err := startFunction(ctx, bootstrap, f.Environment)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		size := float64(info.Size()) / 1e6
		median := percentile(started.ready, 50)
		fmt.Printf("%-14s %9.2f MB %-5s %12.2f ms (max %6.2f) %-5s %9.2f ms, most: %s\n", name, size, missed(size >= aimSize),
			ms(median), ms(started.ready[len(started.ready)-1]), missed(median >= aimStart), ms(started.inits), started.heaviest)
	}
	return nil
}

// missed marks a figure that misses its aim.
func missed(it bool) string {
	if it {
		return "!"
	}
	return ""
}

// started holds the measurements of the starts of a function.
type started struct {
	// ready are the times from the start of a process to its first poll, sorted.
	ready []time.Duration
	// inits is how long the initialization of all packages took at one start, heaviest is the
	// package that took longest.
	inits    time.Duration
	heaviest string
}

// startFunction starts a function by itself, with a Runtime API that has no calls.
func startFunction(ctx context.Context, bootstrap string, declared map[string]string) (started, error) {
	requested := make(chan time.Time, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requested <- time.Now()
		<-r.Context().Done()
	}))
	defer api.Close()
	environment := []string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(api.URL, "http://"), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
	}
	declared = maps.Clone(declared)
	// The function has a place for agents.
	declared["SLIPWAY_AGENT_HOST"], declared["SLIPWAY_AGENT_HOST_TOKEN"] = api.URL, "none"
	for name, value := range declared {
		environment = append(environment, name+"="+value)
	}
	var s started
	for range starts {
		took, _, err := startOnce(ctx, bootstrap, environment, requested)
		if err != nil {
			return s, err
		}
		s.ready = append(s.ready, took)
	}
	slices.Sort(s.ready)
	_, trace, err := startOnce(ctx, bootstrap, append(environment, "GODEBUG=inittrace=1"), requested)
	if err != nil {
		return s, err
	}
	s.inits, s.heaviest = readInits(trace)
	return s, nil
}

// startOnce returns the time until the first poll, and the output of the process.
func startOnce(ctx context.Context, bootstrap string, environment []string, requested <-chan time.Time) (time.Duration, string, error) {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, bootstrap)
	cmd.Env, cmd.Stdout, cmd.Stderr = environment, &output, &output
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	var took time.Duration
	var err error
	select {
	case at := <-requested:
		took = at.Sub(begun)
	case <-time.After(10 * time.Second):
		err = errors.New("it does not ask for a call")
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if err != nil {
		return 0, "", fmt.Errorf("%w\n%s", err, output.String())
	}
	return took, output.String(), nil
}

// readInits adds up the times that GODEBUG=inittrace=1 prints: "init package @1.2 ms, 0.34 ms
// clock, ...".
func readInits(trace string) (all time.Duration, heaviest string) {
	var most float64
	for line := range strings.Lines(trace) {
		words := strings.Fields(line)
		if len(words) < 6 || words[0] != "init" {
			continue
		}
		took, err := strconv.ParseFloat(words[4], 64)
		if err != nil {
			continue
		}
		all += time.Duration(took * float64(time.Millisecond))
		if took > most {
			most, heaviest = took, fmt.Sprintf("%s %.2f ms", words[1], took)
		}
	}
	return all, heaviest
}
