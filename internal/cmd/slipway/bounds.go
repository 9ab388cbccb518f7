package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/pflag"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

// defaultSleepAfter lets no agent sleep during a conversation in which people think before they
// answer. A wake takes seconds, so it costs at most half a percent of an agent's time.
const defaultSleepAfter = 15 * time.Minute

// addBounds adds the flags that limit the tenants' use of the machine.
func addBounds(flags *pflag.FlagSet, config *standalone.Config) {
	flags.Var((*keepFree)(&config.KeepFree), "keep-free",
		"how much of the disk of the data directory is kept free, as 2GiB, 10% or 0: below that, what adds data is refused (default 5%, at most 512MiB)")
	flags.DurationVar(&config.SleepAfter, "sleep-after", defaultSleepAfter,
		"how long nobody must call an agent that is a process, so that its process is ended until the next request; 0 for never; agents of the type prod never sleep")
	flags.Var((*count)(&config.AwakeAgents), "awake-agents",
		"how many of the agents that may sleep are kept awake, those with callers included: above that, the agent that was idle for the longest time sleeps once it was idle for 30s; needs --sleep-after (default: no bound)")
	flags.Var((*bytes)(&config.Memory), "memory",
		"how much memory the bodies of requests and the events of agents may take together, as 192MiB; open streams may take two thirds of it in addition, 64KiB each, of which a workspace may have half of what the others leave (default 192MiB)")
	flags.Var((*bytes)(&config.RunBytes), "run-bytes", "how many bytes of events a run may send, as 1GiB (default 1GiB)")
	flags.Var((*count)(&config.RunEvents), "run-events", "how many events a run may send (default 1000000)")
	flags.Var((*connections)(&config.Connections), "connections",
		"how many connections are held at a time, a quarter of them without a key (default: half of the limit of open files, at most 16384)")
}

// count is a flag value: a number that is not 0.
type count int64

// Set implements pflag.Value.
func (c *count) Set(text string) error {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number <= 0 {
		return errors.New("want a number above 0")
	}
	*c = count(number)
	return nil
}

// String implements pflag.Value. A zero value has no text, because the usage names the default.
func (c *count) String() string {
	if *c == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*c), 10)
}

// Type implements pflag.Value.
func (c *count) Type() string { return "number" }

// connections is a flag value: the number of held connections.
type connections inbound.Limits

// Set implements pflag.Value.
func (c *connections) Set(text string) error {
	var number count
	if err := number.Set(text); err != nil {
		return err
	}
	*c = connections(inbound.Split(int(min(number, math.MaxInt32))))
	return nil
}

// String implements pflag.Value.
func (c *connections) String() string {
	number := count(c.Anonymous + c.Known)
	return number.String()
}

// Type implements pflag.Value.
func (c *connections) Type() string { return "number" }

// bytes is a flag value: a number of bytes.
type bytes int64

var errBytes = errors.New("want a number of bytes, such as 512MiB or 2GiB")

// Set implements pflag.Value.
func (b *bytes) Set(text string) error {
	number, err := units.RAMInBytes(text)
	if err != nil || number <= 0 {
		return errBytes
	}
	*b = bytes(number)
	return nil
}

// String implements pflag.Value. A zero value has no text, because the usage names the default.
func (b *bytes) String() string {
	if *b == 0 {
		return ""
	}
	return units.BytesSize(float64(*b))
}

// Type implements pflag.Value.
func (b *bytes) Type() string { return "bytes" }

// keepFree is a flag value: the space of a disk that is kept free.
type keepFree disk.Keep

var errKeep = errors.New("want a number of bytes, such as 2GiB, or a share of the disk, such as 10%, or 0")

// Set implements pflag.Value.
func (k *keepFree) Set(text string) error {
	if share, isShare := strings.CutSuffix(text, "%"); isShare {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || math.IsNaN(percent) || percent <= 0 || percent >= 100 {
			return errKeep
		}
		*k = keepFree{Percent: percent}
		return nil
	}
	if text == "0" {
		*k = keepFree{Bytes: -1}
		return nil
	}
	var number bytes
	if number.Set(text) != nil {
		return errKeep
	}
	*k = keepFree{Bytes: int64(number)}
	return nil
}

// String implements pflag.Value.
func (k *keepFree) String() string {
	switch {
	case k.Percent != 0:
		return strconv.FormatFloat(k.Percent, 'g', -1, 64) + "%"
	case k.Bytes < 0:
		return "0"
	}
	return (*bytes)(&k.Bytes).String()
}

// Type implements pflag.Value.
func (k *keepFree) Type() string { return "bytes or %" }
