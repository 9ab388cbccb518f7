package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

// registryForm is the form of a registry, or of a part of a registry.
var registryForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*$`)

// checkFlags returns an error for values of flags with which a server would start, but would not do
// what the flags ask for.
func checkFlags(ctx context.Context, flags *pflag.FlagSet, config standalone.Config, rate float64) error {
	if err := client.CheckBaseURL(config.BaseURL); err != nil {
		return err
	}
	if err := checkListen(ctx, config.Listen); err != nil {
		return err
	}
	for name, limit := range map[string]time.Duration{"ready-limit": config.ReadyLimit, "drain-limit": config.DrainLimit} {
		if flags.Changed(name) && limit <= 0 {
			return fmt.Errorf("--%s must be more than 0, not %s", name, limit)
		}
	}
	if !(rate >= 0) { // this also refuses what is no number
		return fmt.Errorf("--rate-limit must be at least 0, not %g", rate)
	}
	if err := checkNames(config); err != nil {
		return err
	}
	return checkSleep(config)
}

// checkSleep returns an error for flags by which no agent could sleep as they say.
func checkSleep(config standalone.Config) error {
	if config.SleepAfter < 0 {
		return errors.New("--sleep-after: want a duration of at least 0")
	}
	if config.AwakeAgents > 0 && config.SleepAfter == 0 {
		return errors.New("--awake-agents needs --sleep-after, because agents that never sleep make no room")
	}
	return nil
}

// checkNames returns an error for an origin or a registry that does not have the form of one.
func checkNames(config standalone.Config) error {
	for _, origin := range config.Origins {
		parsed, err := url.Parse(origin)
		if origin != web.AnyOrigin && (err != nil || parsed.Scheme == "" || parsed.Host == "" || origin != parsed.Scheme+"://"+parsed.Host) {
			return fmt.Errorf("--allow-origin must be an origin, as https://app.example.com, not %q", origin)
		}
	}
	if config.ImageRegistry != "" && !registryForm.MatchString(config.ImageRegistry) {
		return fmt.Errorf("--image-registry must be a registry, or a part of one, as registry.example.com/library, not %q", config.ImageRegistry)
	}
	return nil
}

// checkListen returns an error for an address at which no machine can listen.
func checkListen(ctx context.Context, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--listen must be HOST:PORT, not %q: %w", address, err)
	}
	return nil
}
