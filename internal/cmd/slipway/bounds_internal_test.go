package main

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

func TestBounds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]standalone.Config{
		"":                     {SleepAfter: 15 * time.Minute},
		"--sleep-after=2h":     {SleepAfter: 2 * time.Hour},
		"--awake-agents=20":    {AwakeAgents: 20},
		"--awake-agents=0":     {Listen: "refused"},
		"--keep-free=2GiB":     {KeepFree: disk.Keep{Bytes: 2 << 30}},
		"--keep-free=12.5%":    {KeepFree: disk.Keep{Percent: 12.5}},
		"--keep-free=0":        {KeepFree: disk.Keep{Bytes: -1}},
		"--memory=256MiB":      {Memory: 256 << 20},
		"--run-bytes=1g":       {RunBytes: 1 << 30},
		"--run-events=5":       {RunEvents: 5},
		"--connections=400":    {Connections: inbound.Limits{Anonymous: 100, Known: 300}},
		"--keep-free=-1":       {Listen: "refused"},
		"--keep-free=100%":     {Listen: "refused"},
		"--keep-free=NaN%":     {Listen: "refused"},
		"--keep-free=much":     {Listen: "refused"},
		"--memory=0":           {Listen: "refused"},
		"--run-events=-3":      {Listen: "refused"},
		"--connections=a":      {Listen: "refused"},
		"--run-bytes=1 potato": {Listen: "refused"},
	} {
		var config standalone.Config
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		addBounds(flags, &config)
		var args []string
		if text != "" {
			args = []string{text}
		}
		if err := flags.Parse(args); err != nil {
			config = standalone.Config{Listen: "refused"}
		}
		if (want.SleepAfter != 0 && config.SleepAfter != want.SleepAfter) || config.AwakeAgents != want.AwakeAgents || config.KeepFree != want.KeepFree || config.Memory != want.Memory || config.RunBytes != want.RunBytes || config.RunEvents != want.RunEvents ||
			config.Connections != want.Connections || config.Listen != want.Listen {
			t.Errorf("%s: got %+v", text, config)
		}
	}
}

// TestProxies reads the value of --proxy.
func TestProxies(t *testing.T) {
	t.Parallel()
	two := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.1.0.0/16")}
	for text, want := range map[string]inbound.Proxies{
		"127.0.0.1,10.1.0.0/16=X-Real-IP": {Header: "X-Real-IP", Networks: two},
		"127.0.0.1":                       {},
		"127.0.0.1=":                      {},
		"127.0.0.1=X Real":                {},
		"=X-Real-IP":                      {},
		"proxy=X-Real-IP":                 {},
		"true=X-Real-IP":                  {},
		"false=X-Real-IP":                 {},
	} {
		got, err := parseProxies(text)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want.Header != "") {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}
