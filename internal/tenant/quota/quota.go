package quota

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Name is the name of a quota, for operators and in answers.
type Name string

// The quotas.
const (
	// Deployments are the deployments that the workspace lists.
	Deployments Name = "deployments"
	// Replicas are the replicas that all deployments together may have at most: their max_scale. A
	// deployment that a listener runs has none, because it runs on a machine of the workspace.
	Replicas Name = "replicas"
	// Crons are the crons of all deployments.
	Crons Name = "crons"
	// DeploymentCrons are the crons of one deployment. A search reads all of them.
	DeploymentCrons Name = "crons_per_deployment"
	// Webhooks are the webhooks of the workspace. Every event writes to each of them in its
	// transaction.
	Webhooks Name = "webhooks"
	// AuthTokens are the tokens that the Auth Service keeps for users of the workspace.
	AuthTokens Name = "auth_tokens"
	// Threads are the threads of all deployments.
	Threads Name = "threads"
	// Runs are the threads that have a run in flight.
	Runs Name = "runs_at_once"
	// Stored are the bytes of all threads and of the items of all stores, as far as [Pool.Draw]
	// counts them.
	Stored Name = "stored_bytes"
	// FileBytes are the bytes of the workspace's uploads, builds and pushed images, where these are
	// files of the server's machine: see [Files].
	FileBytes Name = "file_bytes"
	// Streams are the connections that wait for events, for lines of a log, for work, or for the
	// end of a run or of a revision; and slow work: see [Patiently].
	Streams Name = "streams_at_once"
	// ThreadStreams are the Streams of one thread.
	ThreadStreams Name = "streams_per_thread"
	// Requests are how many requests a second all callers of the workspace may send in the long
	// run. The package comment says how many more may come at once.
	Requests Name = "requests_per_second"
)

// Quota is a limit for one workspace.
type Quota struct {
	Name Name
	// Default is the limit if the operator sets no limit: more than a team needs.
	Default int64
	// Most is the highest limit that an operator may set; 0 allows any limit.
	Most int64
	// Refusal is the kind of the fault when the quota is used up: fault.Forbidden for stored
	// objects, fault.TooMany for requests and connections.
	Refusal fault.Kind
	// Mend says what the workspace can do about it.
	Mend string
}

// All are the quotas, in the order in which they are shown.
var All = []Quota{
	{Deployments, 1000, 0, fault.Forbidden, "Delete a deployment"},
	{Replicas, 2000, 0, fault.Forbidden, "Delete a deployment, or give a deployment a lower max_scale"},
	{Threads, 10_000_000, 0, fault.Forbidden, "Delete threads, or give them a time to live"},
	{Crons, 10_000, 0, fault.Forbidden, "Delete a cron"},
	{DeploymentCrons, 1000, 10_000, fault.Forbidden, "Delete a cron of this deployment"},
	{Webhooks, 10, 20, fault.Forbidden, "Delete a webhook"},
	{AuthTokens, 100_000, 0, fault.Forbidden, "Delete tokens of the Auth Service"},
	{Runs, 10_000, 0, fault.TooMany, "Wait until runs have ended"},
	{Stored, 100_000_000_000, 0, fault.Forbidden, "Delete threads or items of the store, or give them a time to live"},
	{FileBytes, 200_000_000_000, 0, fault.Forbidden, "Delete deployments that are not needed"},
	{Streams, 5000, 0, fault.TooMany, "Close connections that wait for runs"},
	{ThreadStreams, 2000, 0, fault.TooMany, "Close connections that wait for runs of this thread"},
	{Requests, 2000, 0, fault.TooMany, "Send fewer requests"},
}

func of(name Name) Quota {
	i := slices.IndexFunc(All, func(q Quota) bool { return q.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("quota: there is no quota %q", name))
	}
	return All[i]
}

// Limits are the limits that an operator has set; a quota without an entry has its default.
// The zero value is all defaults.
type Limits struct{ set map[Name]int64 }

// With returns limits with another value of one quota.
func (l Limits) With(name Name, limit int64) Limits {
	set := maps.Clone(l.set)
	if set == nil {
		set = map[Name]int64{}
	}
	set[of(name).Name] = limit
	return Limits{set}
}

// Within returns limits in which a quota that the operator has not set is at most this.
func (l Limits) Within(name Name, most int64) Limits {
	if _, set := l.set[name]; set || of(name).Default <= most {
		return l
	}
	return l.With(name, most)
}

// Of returns a quota's limit.
func (l Limits) Of(name Name) int64 {
	if limit, ok := l.set[name]; ok {
		return limit
	}
	return of(name).Default
}

// ParseLimits reads a setting such as "threads=20000000,webhooks=15"; "" sets nothing.
func ParseLimits(setting string) (Limits, error) {
	var l Limits
	err := l.Set(setting)
	return l, err
}

// Set adds a setting to the limits; Set, String and Type make Limits usable as a flag's value.
func (l *Limits) Set(setting string) error {
	for entry := range strings.SplitSeq(setting, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		i := slices.IndexFunc(All, func(q Quota) bool { return string(q.Name) == name })
		if i < 0 {
			return fmt.Errorf("there is no quota %q: the quotas are %s", name, strings.Join(names(), ", "))
		}
		limit, err := strconv.ParseInt(value, 10, 64)
		if err != nil || limit < 0 {
			return fmt.Errorf("quota %s: %q is not a number of 0 or more", name, value)
		}
		if most := All[i].Most; most > 0 && limit > most {
			return fmt.Errorf("quota %s: %d is over %d, the most that is possible", name, limit, most)
		}
		*l = l.With(All[i].Name, limit)
	}
	return nil
}

func names() []string {
	list := make([]string, len(All))
	for i, q := range All {
		list[i] = string(q.Name)
	}
	return list
}

// String returns the limits in the form that ParseLimits reads.
func (l Limits) String() string {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(l.set)) {
		entries = append(entries, fmt.Sprintf("%s=%d", name, l.set[name]))
	}
	return strings.Join(entries, ",")
}

// Type names the value in the help of a command.
func (*Limits) Type() string { return "name=limit" }

// retryAfter is how long a client should wait before it repeats a request that was refused
// with fault.TooMany.
const retryAfter = 5 * time.Second

// Refuse returns the fault of a request that finds a quota used up.
func (l Limits) Refuse(name Name) *fault.Error {
	q := of(name)
	refusal := fault.New(q.Refusal,
		"The quota %s of this workspace is used up: its limit is %d. %s, or have the operator of the server raise it (--quota %s=N, on AWS the parameter Quotas).",
		name, l.Of(name), q.Mend, name)
	if q.Refusal == fault.TooMany {
		refusal.RetryAfter = retryAfter
	}
	return refusal
}
