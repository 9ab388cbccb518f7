package stack

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Names of the variables that the packages below this package read, too.
const (
	// VariableHost is the address of the machine that agents run on, if they run on a machine.
	VariableHost = "SLIPWAY_AGENT_HOST"
	// VariableHostToken is the token of that machine's host program.
	VariableHostToken = "SLIPWAY_AGENT_HOST_TOKEN"
)

// Names of the variables that only this package reads.
const (
	variableRegion        = "AWS_REGION"
	variableAccessKey     = "AWS_ACCESS_KEY_ID"
	variableSecretKey     = "AWS_SECRET_ACCESS_KEY"
	variableSessionToken  = "AWS_SESSION_TOKEN"
	variableEndpoint      = "AWS_ENDPOINT_URL"
	variableTable         = "SLIPWAY_TABLE"
	variableKey           = "SLIPWAY_KMS_KEY"
	variableStateMachines = "SLIPWAY_STATE_MACHINES"
	variableBaseURL       = "SLIPWAY_BASE_URL"
	variableVersion       = "SLIPWAY_VERSION"
	variableRedact        = "SLIPWAY_REDACT_SECRETS"
	variablePrivate       = "SLIPWAY_PRIVATE_ADDRESSES"
	variableLoopback      = "SLIPWAY_LOOPBACK_ADDRESSES"
	variableQuotas        = "SLIPWAY_QUOTAS"
	variableStreams       = "SLIPWAY_STREAM_CAPACITY"
	variableThrottleRate  = "SLIPWAY_THROTTLE_RATE"
	variableCompute       = "SLIPWAY_COMPUTE"
	variableGitHubURL     = "SLIPWAY_GITHUB_URL"
	variableMetrics       = "SLIPWAY_METRICS"
	variableCdn           = "SLIPWAY_CDN_NETWORKS"
	variableClientAddress = "SLIPWAY_CLIENT_ADDRESS_HEADER"
)

// Environment has the values that the template gives to the functions.
type Environment struct {
	getenv func(string) string

	// Table is the name of the DynamoDB table.
	Table string
	// Key is the id or ARN of the KMS key that wraps the data keys.
	Key string
	// StateMachines is the ARN of a state machine without the machine's name.
	StateMachines string
	// BaseURL is the public address of the API; if it is empty, each request's own address is
	// used.
	BaseURL string
	// Version is shown by /info, and is the image_version of new deployments.
	Version string
	// RedactSecrets hides the values of secrets from all callers, even if they may change them.
	RedactSecrets bool
	// PrivateAddresses are the networks in which OAuth providers, webhooks and the agents of
	// listeners may have addresses although these are not public. Addresses of the machine
	// itself and of its link never belong to them, except on a single machine that also runs
	// the agents and the tests.
	PrivateAddresses outbound.Networks
	// Quotas bound the resources of each workspace: see quotas.
	Quotas quota.Limits
	// Proxies are the CDN in front of the API.
	Proxies inbound.Proxies
}

// Need names the variables that a part of the stack requires.
type Need func(Environment) []string

// NeedTable names the needs of functions that read or write, which are all functions.
func NeedTable(Environment) []string {
	return []string{variableTable, variableRegion, variableAccessKey, variableSecretKey}
}

// NeedKey names the needs of functions that open secrets, check API keys or invoke agents.
func NeedKey(Environment) []string { return []string{variableKey} }

// NeedEngine names the needs of functions that start workflows.
func NeedEngine(Environment) []string { return []string{variableStateMachines} }

// NeedOnAWS names the needs of functions whose agents run on AWS. Functions whose agents run on a
// machine do not have them.
func NeedOnAWS(names ...string) Need {
	return func(env Environment) []string {
		if env.IsHosted() {
			return nil
		}
		return names
	}
}

// ReadEnvironment reads the variables and names all that are missing.
func ReadEnvironment(getenv func(string) string, needs ...Need) (Environment, error) {
	env := Environment{
		getenv:        getenv,
		Table:         getenv(variableTable),
		Key:           getenv(variableKey),
		StateMachines: getenv(variableStateMachines),
		BaseURL:       getenv(variableBaseURL),
		Version:       getenv(variableVersion),
		RedactSecrets: getenv(variableRedact) == "true",
	}
	var err error
	if env.PrivateAddresses, err = outbound.ParseNetworks(getenv(variablePrivate)); err != nil {
		return Environment{}, fmt.Errorf("%s: %w", variablePrivate, err)
	}
	// In a function of AWS, loopback leads to the runtime that hands out events of all tenants.
	if getenv(variableLoopback) != "true" {
		env.PrivateAddresses = env.PrivateAddresses.Elsewhere()
	}
	if env.Quotas, err = env.quotas(); err != nil {
		return Environment{}, err
	}
	env.Proxies.Header = getenv(variableClientAddress)
	for _, network := range env.List(variableCdn) {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return Environment{}, fmt.Errorf("%s: %w", variableCdn, err)
		}
		env.Proxies.Networks = append(env.Proxies.Networks, prefix)
	}
	var missing []string
	for _, need := range needs {
		for _, name := range need(env) {
			if env.Get(name) == "" && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		return Environment{}, fmt.Errorf("these variables are not set: %s", strings.Join(missing, ", "))
	}
	return env, nil
}

// quotas returns the limits of each workspace. A limit that the operator has not set is at most
// half of what all workspaces have together, and a quarter for a thread, so that a workspace
// cannot use up the stack. A capacity that is not set bounds nothing.
func (e Environment) quotas() (quota.Limits, error) {
	limits, err := quota.ParseLimits(e.Get(variableQuotas))
	if err != nil {
		return quota.Limits{}, fmt.Errorf("%s: %w", variableQuotas, err)
	}
	for _, bound := range []struct {
		variable string
		shares   map[quota.Name]int64 // divisors
	}{
		{variableStreams, map[quota.Name]int64{quota.Streams: 2, quota.ThreadStreams: 4}},
		{variableThrottleRate, map[quota.Name]int64{quota.Requests: 2}},
	} {
		text := e.Get(bound.variable)
		if text == "" {
			continue
		}
		capacity, err := strconv.ParseInt(text, 10, 64)
		if err != nil || capacity <= 0 {
			return quota.Limits{}, fmt.Errorf("%s: %q is not a number above 0", bound.variable, text)
		}
		for name, divisor := range bound.shares {
			limits = limits.Within(name, max(1, capacity/divisor))
		}
	}
	if e.Get(variableCompute) == "ecs" && !e.IsHosted() {
		limits = limits.Within(quota.Deployments, fargateReleases/4) // two while each rolls out
	}
	return limits, nil
}

// fargateReleases is how many releases the stack's load balancer can have: each has a target group,
// and AWS does not raise the quota of target groups for a load balancer.
const fargateReleases = 100

// Get returns any variable.
func (e Environment) Get(name string) string { return e.getenv(name) }

// IsHosted reports whether agents are processes of the machine that the functions run on.
func (e Environment) IsHosted() bool { return e.Get(VariableHost) != "" }

// List returns a variable that holds a comma-separated list.
func (e Environment) List(name string) []string {
	var list []string
	for entry := range strings.SplitSeq(e.getenv(name), ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			list = append(list, entry)
		}
	}
	return list
}
