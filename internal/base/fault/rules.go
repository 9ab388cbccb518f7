package fault

import (
	"fmt"
	"strings"
)

// Rules collects the rules between fields that a request breaks, to report them all at once.
type Rules struct{ Broken []string }

// Breaks notes a rule that is broken, as a sentence.
func (r *Rules) Breaks(format string, args ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
}

// Err returns an Invalid error with all rules that are broken; nil if there are none.
func (r *Rules) Err() error {
	if len(r.Broken) == 0 {
		return nil
	}
	return New(Invalid, "%s", strings.Join(r.Broken, " "))
}
