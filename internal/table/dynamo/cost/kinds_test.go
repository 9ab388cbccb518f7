//go:build cost

package cost_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/keys"
)

// compact writes "3 x" for what comes three times in a row.
func compact(list []string) []string {
	var short []string
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(s string) bool { return s != list[0] })
		if n < 0 {
			n = len(list)
		}
		if n > 1 {
			short = append(short, fmt.Sprintf("%d x %s", n, list[0]))
		} else {
			short = append(short, list[0])
		}
		list = list[n:]
	}
	return short
}

// kindOf names what is under a key, as package keys calls it.
func kindOf(pk, sk string) string {
	switch {
	case pk == keys.DataKeys().PK:
		return "data key"
	case pk == keys.Releases().PK:
		return "releases"
	case pk == keys.Rollouts(time.Time{}).PK:
		return "rollouts"
	case strings.HasPrefix(pk, "LEASES#"):
		return "leases"
	case strings.HasPrefix(pk, "BODY-CLAIMS#"):
		return "body claim"
	case strings.HasPrefix(pk, "KEY#"):
		return "API key"
	case strings.HasSuffix(pk, "#API-KEYS"):
		return "API key's record"
	case strings.HasPrefix(pk, "BUILD#"):
		return "build"
	case strings.HasSuffix(pk, "#DEPLOYMENTS"):
		return "deployments"
	case strings.HasSuffix(pk, "#THREADS"):
		return "threads"
	case strings.Contains(pk, "#EVENTS"):
		return "deployment's events"
	case strings.HasSuffix(pk, "#WEBHOOKS"):
		return "webhooks"
	case strings.Contains(pk, "#DEPLOYMENT-NAME#"):
		return "name"
	case strings.Contains(pk, "#TRACING-PROJECT#"):
		return "project"
	}
	kind, _, _ := strings.Cut(sk, "#")
	switch kind {
	case "THREAD", "RUN", "DEPLOYMENT", "WORKSPACE":
		return strings.ToLower(kind)
	case "EV":
		return "events"
	case "CP":
		return "checkpoint"
	case "REV":
		return "revision"
	case "":
		return "partition " + strings.Split(pk+"#", "#")[0]
	}
	return kind
}
