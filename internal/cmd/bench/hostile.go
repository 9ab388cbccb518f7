package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// The concurrent load of the hostile tenant.
const (
	hostileRuns     = 45
	hostileEvent    = 29 << 20
	hostileRequests = 100
	hostileValues   = 12_000_000
	hostileReaders  = 1000
	// hostileLooks are readers of a state of hostileState bytes, hostileLarge are runs on such
	// states. hostileLists are runs whose agent sends hostileEvent bytes of zeros as values.
	hostileLooks = 50
	hostileState = 20 << 20
	hostileLarge = 16
	hostileLists = 16
	// smallPause is the pause between two small requests.
	smallPause = 20 * time.Millisecond

	aimPeakMiB = 512
	aimSmall   = 200 * time.Millisecond
)

// measureHostile has one tenant send and read as much as possible, and measures the server's
// peak memory and how long a small request takes during that load.
func measureHostile(ctx context.Context, c *client) error {
	work, err := os.MkdirTemp("", "slipway-hostile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	url, err := c.deployHostile(ctx, work)
	if err != nil {
		return err
	}
	shown, err := c.hostileRun(ctx, url, "", order{Events: 64, Bytes: 1 << 20}, "success")
	if err != nil {
		return err
	}
	large, err := c.largeThreads(ctx, url)
	if err != nil {
		return err
	}
	if err := c.restart(ctx); err != nil {
		return err
	}
	fmt.Printf("hostile: %d runs of %d MB, %d runs of as many zeros, %d runs on states of %d MB, %d requests of %d values, %d slow readers of a run, %d of a state; memory before %.1f MiB\n",
		hostileRuns, hostileEvent>>20, hostileLists, hostileLarge, hostileState>>20, hostileRequests, hostileValues, hostileReaders, hostileLooks, c.residentMiB())
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var readers, senders errgroup.Group
	for i := range hostileReaders + hostileLooks {
		address := shown + "/stream"
		if i >= hostileReaders {
			address = large[0] + "/state"
		}
		readers.Go(func() error { return c.readSlowly(reading, address) })
	}
	begun := time.Now()
	hostile := func(thread string, input order, want string) {
		senders.Go(func() error {
			_, err := c.hostileRun(ctx, url, thread, input, want)
			return err
		})
	}
	for range hostileRuns {
		hostile("", order{Events: 1, Bytes: hostileEvent}, "success")
	}
	for range hostileLists { // the server refuses so many values
		hostile("", order{Events: 1, Bytes: hostileEvent, Zeros: true}, "error")
	}
	for _, thread := range large {
		hostile(thread, order{Events: 1, Bytes: 1 << 10}, "success")
	}
	body := slices.Concat([]byte(`{"assistant_id":"agent","input":{"a":[0`), bytes.Repeat([]byte(",0"), hostileValues-1), []byte("]}}"))
	for range hostileRequests {
		senders.Go(func() error { return c.sendHostile(ctx, url, body) })
	}
	sent := make(chan error, 1)
	go func() { sent <- senders.Wait() }()
	taken, err := c.besides(ctx, url, sent)
	took := time.Since(begun)
	peak := c.peakMiB()
	stop()
	if err := errors.Join(err, readers.Wait()); err != nil {
		return err
	}
	slices.Sort(taken)
	p99 := percentile(taken, 99)
	fmt.Printf("hostile: all taken or refused in %.1f s; peak memory %.0f MiB (aim < %d) %s\n", took.Seconds(), peak, aimPeakMiB, missed(peak >= aimPeakMiB))
	fmt.Printf("hostile: small request p50 %.1f ms   p99 %.1f ms   max %.1f ms (aim p99 < %s) %s\n",
		ms(percentile(taken, 50)), ms(p99), ms(percentile(taken, 100)), aimSmall, missed(p99 >= aimSmall))
	return nil
}

// besides creates threads until the hostile load has ended, and returns how long each creation
// took.
func (c *client) besides(ctx context.Context, url string, sent <-chan error) (taken []time.Duration, err error) {
	again := time.NewTicker(smallPause)
	defer again.Stop()
	for {
		select {
		case err := <-sent:
			return taken, err
		case <-again.C:
		}
		begun := time.Now()
		if _, err := c.thread(ctx, url); err != nil {
			return taken, errors.Join(err, <-sent)
		}
		taken = append(taken, time.Since(begun))
	}
}

// deployHostile deploys this program as an agent.
func (c *client) deployHostile(ctx context.Context, work string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(map[string]any{"graphs": map[string]string{"agent": "./agent:agent"}, "start": []string{program, "-hostile-agent"}})
	if err != nil {
		return "", err
	}
	source := filepath.Join(work, "source")
	if err := errors.Join(os.Mkdir(source, 0o700), os.WriteFile(filepath.Join(source, "framework.json"), config, 0o600)); err != nil {
		return "", err
	}
	return c.deploy(ctx, "hostile", source, work)
}

// largeThreads makes threads with large states.
func (c *client) largeThreads(ctx context.Context, url string) (threads []string, err error) {
	large := map[string]any{"values": map[string]any{"text": strings.Repeat("x", hostileState)}}
	for range hostileLarge {
		thread, err := c.thread(ctx, url)
		if err != nil {
			return nil, err
		}
		if err := c.discard(ctx, http.MethodPost, thread+"/state", large); err != nil {
			return nil, err
		}
		threads = append(threads, thread)
	}
	return threads, nil
}

// hostileRun makes a run on a thread, on a new thread if it is "", and waits for its end with
// the status that is wanted; it returns the run's URL.
func (c *client) hostileRun(ctx context.Context, url, thread string, input order, want string) (string, error) {
	if thread == "" {
		var err error
		if thread, err = c.thread(ctx, url); err != nil {
			return "", err
		}
	}
	body := map[string]any{"assistant_id": "agent", "input": map[string]any{}, "stream_mode": "custom", "config": map[string]any{"configurable": input}}
	address, err := c.run(ctx, thread, body)
	if err != nil {
		return "", err
	}
	// A join would answer with the state, for which there may be no room beside slow readers.
	return address, c.awaitStatus(ctx, address, want, 10*smallPause)
}

// sendHostile sends a request that the server may refuse, but must answer.
func (c *client) sendHostile(ctx context.Context, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/runs", bytes.NewReader(body))
	if err != nil {
		return err
	}
	c.authenticate(request.Header.Set)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 500 && response.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("a hostile request is answered %s", response.Status)
	}
	return nil
}

func (c *client) authenticate(set func(name, value string)) {
	set("Content-Type", "application/json")
	set("X-Api-Key", c.APIKey)
	set("X-Tenant-Id", c.TenantID)
}

// readSlowly reads an answer at about 10 KB a second until ctx ends or the server gives up, on
// a connection that buffers little itself.
func (c *client) readSlowly(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	c.authenticate(request.Header.Set)
	dialer := net.Dialer{}
	conn, err := dialer.DialContext(ctx, "tcp", request.URL.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A read that waits for data ends with ctx, too.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return err
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	buffer := make([]byte, 1<<10)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		if _, err := conn.Read(buffer); err != nil {
			return nil // a server may refuse a client that reads this slowly
		}
	}
}
