package listener

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slipway-run/slipway/internal/base/fault"
)

const (
	// maxText is the largest length of a compute_id or a version, in bytes.
	maxText = 255
	// maxNamespaces is the largest number of namespaces of a listener.
	maxNamespaces = 100
)

// rules are the rules that a request breaks.
type rules struct{ fault.Rules }

// validate checks a listener as it would be after a request.
func validate(l Listener) error {
	r := new(rules)
	r.text("compute_id", l.ComputeID)
	if l.Version != nil {
		r.text("version", *l.Version)
	}
	all := l.ComputeConfig.K8sNamespaces
	if len(all) > maxNamespaces {
		r.Breaks("compute_config.k8s_namespaces may have %d entries at most, not %d.", maxNamespaces, len(all))
		return r.Err()
	}
	for i, namespace := range all {
		switch {
		case !label.MatchString(namespace):
			r.Breaks("compute_config.k8s_namespaces[%d] %q is not the name of a namespace: 1 to 63 lowercase letters, digits and '-', "+
				"beginning and ending with a letter or digit.", i, namespace)
		case slices.Contains(all[:i], namespace):
			r.Breaks("compute_config.k8s_namespaces[%d] %s is given twice.", i, namespace)
		}
	}
	return r.Err()
}

func (r *rules) text(field, value string) {
	if value == "" || len(value) > maxText || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		r.Breaks("%s must have 1 to %d bytes and no control characters.", field, maxText)
	}
}

// label matches a DNS label (RFC 1123), as the names of namespaces are.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
