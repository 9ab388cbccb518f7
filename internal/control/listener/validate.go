package listener

import (
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
	// maxLabel is the largest length of a DNS label.
	maxLabel = 63
)

// rules are the rules that a request breaks.
type rules struct{ fault.Rules }

// validate checks a listener as it would be after a request.
func validate(l Listener) error {
	r := new(rules)
	if l.ComputeType != K8s {
		r.Breaks("compute_type must be %s, not %q.", K8s, l.ComputeType)
	}
	r.text("compute_id", l.ComputeID)
	if l.Version != nil {
		r.text("version", *l.Version)
	}
	r.namespaces(l.ComputeConfig.K8sNamespaces)
	return r.Err()
}

func (r *rules) text(field, value string) {
	if value == "" || len(value) > maxText || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		r.Breaks("%s must have 1 to %d bytes and no control characters.", field, maxText)
	}
}

func (r *rules) namespaces(all []string) {
	if len(all) > maxNamespaces {
		r.Breaks("compute_config.k8s_namespaces may have %d entries at most, not %d.", maxNamespaces, len(all))
		return
	}
	for i, namespace := range all {
		switch {
		case !isLabel(namespace):
			r.Breaks("compute_config.k8s_namespaces[%d] %q is not the name of a namespace: 1 to %d lowercase letters, digits and '-', "+
				"beginning and ending with a letter or digit.", i, namespace, maxLabel)
		case slices.Contains(all[:i], namespace):
			r.Breaks("compute_config.k8s_namespaces[%d] %s is given twice.", i, namespace)
		}
	}
}

// isLabel reports whether a text is a DNS label (RFC 1123), as the names of namespaces are.
func isLabel(text string) bool {
	if text == "" || len(text) > maxLabel || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool { return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') })
}
