package web

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// problem is one mistake in a request.
type problem struct {
	fault.Detail
	// rank orders problems of one value: the most helpful problem comes first.
	rank int
	// mismatch says that the value has another JSON type than the schema requires.
	mismatch bool
}

type problems []problem

// newProblem keeps its own copy of loc.
func newProblem(loc []any, kind, message string) problem {
	return problem{Detail: fault.Detail{Loc: slices.Clone(loc), Type: kind, Msg: message}}
}

// asError returns the problems as one fault, or nil if there are no problems. They are ordered
// by place, and each value has one problem.
func (p problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b problem) int {
		return cmp.Or(compareLoc(a.Loc, b.Loc), cmp.Compare(a.rank, b.rank))
	})
	details := make([]fault.Detail, 0, len(p))
	for _, one := range p {
		if n := len(details); n == 0 || compareLoc(details[n-1].Loc, one.Loc) != 0 {
			details = append(details, one.Detail)
		}
	}
	return fault.Shape(details...)
}

// places orders the parts of a request as a client writes them.
var places = map[any]int{"path": 1, "query": 2, "header": 3, "body": 4}

func compareLoc(a, b []any) int {
	if len(a) > 0 && len(b) > 0 && a[0] != b[0] {
		return cmp.Compare(places[a[0]], places[b[0]])
	}
	return slices.CompareFunc(a, b, compareToken)
}

// compareToken orders indexes by number and before names.
func compareToken(a, b any) int {
	i, aIsIndex := a.(int)
	j, bIsIndex := b.(int)
	switch {
	case aIsIndex && bIsIndex:
		return cmp.Compare(i, j)
	case aIsIndex:
		return -1
	case bIsIndex:
		return 1
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}
