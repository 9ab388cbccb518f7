package ecs

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

const (
	// MaxPrefix is how long a NamePrefix may be. Names of target groups have 32 characters;
	// the other eleven are a hyphen and the short form of the revision.
	MaxPrefix = 32 - 1 - shortLength
	// shortLength characters of base32 distinguish the target groups of a region, of which
	// there are at most 3000: two of them are equal once in 10^8 cases.
	shortLength = 10
)

var validPrefix = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$`)

// names are the names of all resources of a release. Each name is derived from the revision's
// id. So the next Apply, and Remove, find what an Apply that was cut off has made.
type names struct {
	prefix, cluster string
	// arn is the beginning of the ARNs of services in the cluster; only Express Mode needs it.
	arn string
}

func newNames(cfg Config) (names, error) {
	if cfg.NamePrefix != "" && (len(cfg.NamePrefix) > MaxPrefix || !validPrefix.MatchString(cfg.NamePrefix)) {
		return names{}, fmt.Errorf("the name prefix %q is not made of at most %d letters, digits and hyphens", cfg.NamePrefix, MaxPrefix)
	}
	cluster := cfg.Cluster[strings.LastIndexByte(cfg.Cluster, '/')+1:]
	n := names{prefix: cfg.NamePrefix, cluster: cluster}
	if cfg.Compute != Express {
		return n, nil
	}
	// arn:aws:iam::123456789012:role/name
	role := strings.Split(cfg.InfrastructureRole, ":")
	if len(role) < 6 || cfg.AWS.Region == "" {
		return names{}, errors.New("the ARN of the infrastructure role, or the region, is missing")
	}
	n.arn = fmt.Sprintf("arn:%s:ecs:%s:%s:service/%s/", role[1], cfg.AWS.Region, role[4], cluster)
	return n, nil
}

// of is the name of a revision's service, of its family of task definitions, and of its
// secret.
func (n names) of(ref compute.Ref) string { return n.prefix + "-" + ref.Revision }

// service is the ARN of a revision's Express service.
func (n names) service(ref compute.Ref) string { return n.arn + n.of(ref) }

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// targetGroup is the name of a revision's target group.
func (n names) targetGroup(ref compute.Ref) string {
	sum := sha256.Sum256([]byte(ref.Revision))
	return n.prefix + "-" + lowerBase32.EncodeToString(sum[:])[:shortLength]
}

// scalable is the name of a revision's service in Application Auto Scaling.
func (n names) scalable(ref compute.Ref) string { return "service/" + n.cluster + "/" + n.of(ref) }

// check refuses a revision whose names would name another resource, or no resource.
func (n names) check(ref compute.Ref) error {
	if n.prefix == "" {
		return errors.New("there is no name prefix")
	}
	if !id.Valid(ref.Revision) {
		return fmt.Errorf("revision %q is not an id", ref.Revision)
	}
	return nil
}

// The tags of every resource of a release.
const (
	tagStack      = "slipway:stack"
	tagWorkspace  = "slipway:workspace"
	tagDeployment = "slipway:deployment"
	tagRevision   = "slipway:revision"
	// tagReadyLimit is on the service of a release that has its own limit. Its value is in
	// seconds.
	tagReadyLimit = "slipway:ready-limit"
	// tagRemoved is on a target group whose service drains; Sweep deletes it after that.
	tagRemoved = "slipway:removed"
)

// tag is a tag in the form that is common to all AWS services.
type tag struct{ key, value string }

func (n names) tags(ref compute.Ref) []tag {
	return []tag{
		{tagStack, n.prefix}, {tagWorkspace, ref.Workspace}, {tagDeployment, ref.Deployment}, {tagRevision, ref.Revision},
	}
}

// tagsAs converts our tags to the tags of one AWS service.
func tagsAs[T any](tags []tag, as func(key, value *string) T) []T {
	list := make([]T, 0, len(tags))
	for _, t := range tags {
		list = append(list, as(&t.key, &t.value))
	}
	return list
}
