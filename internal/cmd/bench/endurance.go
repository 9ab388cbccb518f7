package main

import (
	"context"
	"fmt"
	"time"
)

// The number of stored runs when runs are measured again, and the memory that the server may
// hold then.
const (
	endured   = 85_000
	aimFlat   = 0.9
	aimMemory = 150 // MiB
)

// measureEndurance makes many runs and measures their rate at the beginning and at the end.
func measureEndurance(ctx context.Context, c *client, url string, duration time.Duration) error {
	const clients = 64
	op := func() error {
		thread, err := c.thread(ctx, url)
		if err != nil {
			return err
		}
		return c.runAndJoin(ctx, thread)
	}
	rate := func() (float64, error) {
		begun := time.Now()
		taken, err := load(ctx, clients, duration, op)
		return float64(len(taken)) / time.Since(begun).Seconds(), err
	}
	first, err := rate()
	if err != nil {
		return err
	}
	if err := concurrently(clients, endured, op); err != nil {
		return err
	}
	last, err := rate()
	if err != nil {
		return err
	}
	memory := c.residentMiB()
	fmt.Printf("thread + run + join, %d clients: %.0f /s, after %d runs %.0f /s: %.0f %% (aim >= %.0f %%) %s\n", clients, first, endured, last, 100*last/first,
		100*aimFlat, missed(last < aimFlat*first))
	fmt.Printf("memory, after %d runs            %8.1f MiB (aim < %d) %s\n", endured, memory, aimMemory, missed(memory >= aimMemory))
	return nil
}
