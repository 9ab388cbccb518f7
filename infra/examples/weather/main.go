// Command weather is an example agent: a graph of a model and a tool that looks the weather up,
// behind the HTTP contract that a deployed agent speaks. It needs no network and no key; its model
// is scripted.
//
// Read agent.go first (the graph), then server.go (the contract).
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drainTime is how long running invocations may go on after a SIGTERM.
const drainTime = 10 * time.Second

func main() {
	if err := serve(); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// serve answers on $HOST:$PORT until SIGTERM or SIGINT, then lets running invocations finish.
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", net.JoinHostPort(env("HOST", "0.0.0.0"), env("PORT", "8080")))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newServer(os.Getenv("SLIPWAY_INVOKE_TOKEN"), time.Now), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	slog.Info("listening", "address", listener.Addr().String())

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		stop() // a second signal ends the process at once
		return drain(server)
	}
}

func drain(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// env returns a variable of the environment, or the fallback where it is unset or empty.
func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
