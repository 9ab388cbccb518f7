package main

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/pflag"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

// defaultSleepAfter lets no agent sleep during a conversation in which people think before they
// answer. A wake takes seconds, so it costs at most half a percent of an agent's time.
const defaultSleepAfter = 15 * time.Minute

// addBounds adds the flags that limit the tenants' use of the machine.
func addBounds(flags *pflag.FlagSet, config *standalone.Config) {
	flags.Var(keepFree(&config.KeepFree), "keep-free",
		"how much of the disk of the data directory is kept free, as 2GiB, 10% or 0, and the same share of the files that it can hold: below that, what adds data is refused (default 5%, at most 512MiB)")
	flags.DurationVar(&config.SleepAfter, "sleep-after", defaultSleepAfter,
		"how long nobody must call an agent that is a process, so that its process is ended until the next request; 0 for never; agents of the type prod never sleep")
	flags.Var(count(&config.AwakeAgents), "awake-agents",
		"how many of the agents that may sleep are kept awake, those with callers included: above that, the agent that was idle for the longest time sleeps once it was idle for 30s; needs --sleep-after (default: no bound)")
	flags.Var(bytes(&config.Memory), "memory",
		"how much memory the bodies of requests and the events of agents may take together, as 192MiB; open streams may take two thirds of it in addition, 64KiB each, of which a workspace may have half of what the others leave (default 192MiB)")
	flags.Var(bytes(&config.RunBytes), "run-bytes", "how many bytes of events a run may send, as 1GiB (default 1GiB)")
	flags.Var(count(&config.RunEvents), "run-events", "how many events a run may send (default 1000000)")
	flags.Var(connections(&config.Connections), "connections",
		"how many connections are held at a time, a quarter of them without a key (default: half of the limit of open files, at most 16384)")
}

// value is the value of a flag that is parsed. It has no text until it is set, because the usage
// names the default.
type value[T any] struct {
	to         *T
	kind, text string
	parse      func(text string) (T, error)
}

// Set implements pflag.Value.
func (v *value[T]) Set(text string) (err error) {
	*v.to, err = v.parse(text)
	v.text = text
	return err
}

// String implements pflag.Value.
func (v *value[T]) String() string { return v.text }

// Type implements pflag.Value.
func (v *value[T]) Type() string { return v.kind }

// count is a flag value: a number that is not 0.
func count(to *int64) pflag.Value { return &value[int64]{to: to, kind: "number", parse: parseCount} }

func parseCount(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number <= 0 {
		return 0, errors.New("want a number above 0")
	}
	return number, nil
}

// connections is a flag value: the number of held connections.
func connections(to *inbound.Limits) pflag.Value {
	return &value[inbound.Limits]{to: to, kind: "number", parse: func(text string) (inbound.Limits, error) {
		number, err := parseCount(text)
		return inbound.Split(int(min(number, math.MaxInt32))), err
	}}
}

var headerForm = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// parseProxies reads the addresses of proxies, and the header in which they name clients.
func parseProxies(text string) (inbound.Proxies, error) {
	named, header, _ := strings.Cut(text, "=")
	networks, err := outbound.ParseNetworks(named)
	if err != nil || len(networks) == 0 || networks.All() || !headerForm.MatchString(header) {
		return inbound.Proxies{}, errors.New("want the addresses of proxies and a header, as 127.0.0.1,10.1.0.0/16=X-Real-IP")
	}
	return inbound.Proxies{Header: header, Networks: networks}, nil
}

// bytes is a flag value: a number of bytes.
func bytes(to *int64) pflag.Value { return &value[int64]{to: to, kind: "bytes", parse: parseBytes} }

func parseBytes(text string) (int64, error) {
	number, err := units.RAMInBytes(text)
	if err != nil || number <= 0 {
		return 0, errors.New("want a number of bytes, such as 512MiB or 2GiB")
	}
	return number, nil
}

// keepFree is a flag value: the space of a disk that is kept free.
func keepFree(to *disk.Keep) pflag.Value {
	return &value[disk.Keep]{to: to, kind: "bytes or %", parse: parseKeep}
}

var errKeep = errors.New("want a number of bytes, such as 2GiB, or a share of the disk, such as 10%, or 0")

func parseKeep(text string) (disk.Keep, error) {
	if share, isShare := strings.CutSuffix(text, "%"); isShare {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || math.IsNaN(percent) || percent <= 0 || percent >= 100 {
			return disk.Keep{}, errKeep
		}
		return disk.Keep{Percent: percent}, nil
	}
	if text == "0" {
		return disk.Keep{Bytes: -1}, nil
	}
	number, err := parseBytes(text)
	if err != nil {
		return disk.Keep{}, errKeep
	}
	return disk.Keep{Bytes: number}, nil
}
