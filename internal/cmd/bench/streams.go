package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// The concurrent streams: the number of answers, with a token of each answer in an interval.
const (
	streams  = 1000
	interval = 50 * time.Millisecond
	// tokens is the length of an answer: some tokens still come when all streams are open.
	tokens = 500
	// aimDelay is how late a token may come, except one token in a hundred.
	aimDelay = 250 * time.Millisecond
)

// measureStreams has many readers follow one answer each, and prints how much later than the
// agent's pace the tokens come while all answers are read.
func measureStreams(ctx context.Context, c *client, url string, duration time.Duration) error {
	threads, err := makeThreads(ctx, c, url, streams)
	if err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var readers errgroup.Group
	begun := make(chan error, streams)
	seen := make([][]time.Time, streams)
	opening := make(chan struct{}, 64) // how many streams are opened at a time
	at := 0
	for thread := range threads {
		times := &seen[at]
		at++
		opening <- struct{}{}
		readers.Go(func() error {
			err := c.follow(reading, thread, times, func() { <-opening; begun <- nil })
			if len(*times) == 0 {
				<-opening
				begun <- errors.Join(errors.New("a stream has no token"), err)
			}
			return nil
		})
	}
	for range streams {
		err = errors.Join(err, <-begun)
	}
	before, from := c.cpu(), time.Now()
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
	to, used := time.Now(), c.cpu()-before
	stop()
	if err = errors.Join(err, readers.Wait()); err != nil {
		return err
	}
	delays := delaysOf(seen, interval, func(at time.Time) bool { return at.After(from) && at.Before(to) })
	late := percentile(delays, 99)
	fmt.Printf("%d streams: %.0f tokens/s (%d wanted), delay p50 %.1f ms   p99 %.1f ms   max %.1f ms (aim p99 < %s) %s   server %.0f %% of a processor, %.1f MiB\n",
		streams, float64(len(delays))/to.Sub(from).Seconds(), int(streams*time.Second/interval), ms(percentile(delays, 50)), ms(late), ms(percentile(delays, 100)),
		aimDelay, missed(late >= aimDelay), 100*float64(used)/float64(to.Sub(from)), c.residentMiB())
	return nil
}

// follow streams a run and notes when its tokens come; it calls begin with the first.
func (c *client) follow(ctx context.Context, thread string, times *[]time.Time, begin func()) error {
	return c.tokens(ctx, byRun, thread, interval, tokens, func() {
		if *times = append(*times, time.Now()); len(*times) == 1 {
			begin()
		}
	})
}

// delaysOf returns how much longer than the interval each token came after the previous token,
// sorted, if both count.
func delaysOf(seen [][]time.Time, interval time.Duration, counts func(at time.Time) bool) []time.Duration {
	var delays []time.Duration
	for _, times := range seen {
		for i := 1; i < len(times); i++ {
			if counts(times[i-1]) && counts(times[i]) {
				delays = append(delays, max(times[i].Sub(times[i-1])-interval, 0))
			}
		}
	}
	slices.Sort(delays)
	return delays
}
