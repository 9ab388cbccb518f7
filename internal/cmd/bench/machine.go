package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"
)

// measureMachine measures the best performance of the machine, because machines differ, and
// the performance of a shared machine differs from hour to hour: how many requests per second
// a server answers that does nothing else, with the same clients, and how long it takes to
// write a page to disk. The other figures must be compared with these.
func measureMachine(ctx context.Context, work string, duration time.Duration) error {
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"ok":true}`))
	}))
	c := newClient(&server{})
	taken, err := load(ctx, 64, duration, func() error { return c.discard(ctx, http.MethodGet, bare.URL, nil) })
	bare.CloseClientConnections()
	bare.Close()
	if err != nil {
		return err
	}
	fmt.Printf("%-14s %2d clients %8.0f /s\n", "empty server", 64, float64(len(taken))/duration.Seconds())
	return measureDisk(work)
}

func measureDisk(work string) error {
	file, err := os.Create(work + "/page")
	if err != nil {
		return err
	}
	defer file.Close()
	page, taken := make([]byte, 4096), make([]time.Duration, 200)
	for i := range taken {
		begun := time.Now()
		if _, err := file.Write(page); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		taken[i] = time.Since(begun)
	}
	printTimes("write and sync of 4 KiB", taken)
	return nil
}
