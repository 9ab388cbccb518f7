// Command with runs a command while there is a DynamoDB Local, in memory, whose URL is in
// SLIPWAY_TEST_DYNAMODB. It is started in the project's directory:
//
//	go run ./internal/test/emulator/dynamodb/with go test -tags dynamo ./internal/agent/thread
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
)

// startLimit is how long it may take to start; the first time, it is fetched.
const startLimit = 3 * time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	if len(args) == 0 {
		return errors.New("there is no command")
	}
	dir, err := os.MkdirTemp("", "slipway-dynamodb-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	registry, err := child.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, registry.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	server, err := dynamodb.Start(ctx, dynamodb.Config{Root: ".", Registry: registry, Output: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // what it is given is what it is for, for as long as that takes
	cmd.Env = append(os.Environ(), "SLIPWAY_TEST_DYNAMODB="+server.Endpoint())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
