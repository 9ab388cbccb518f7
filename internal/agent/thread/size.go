package thread

import (
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TooLargeError says that a state, or the part of it that an agent stores, is larger than a
// table can hold, or has more values than the server keeps in memory. The change is not made.
type TooLargeError struct {
	Size, Limit int
	// Values says that the state has too many values.
	Values bool
}

func (e *TooLargeError) Error() string {
	if e.Values {
		return fmt.Sprintf("The thread's state would hold more than %d JSON values, which is the most that this server keeps.", budget.MostValues)
	}
	return fmt.Sprintf("The thread's state would hold %d bytes: the limit is %d.", e.Size, e.Limit)
}

// CheckSize returns a TooLargeError if the item's body has more bytes than the limit, or if the
// body or the state has too many values.
func CheckSize(put table.Put, values state.Values, limit int) error {
	if size := len(put.Item.Body); size > limit {
		return &TooLargeError{Size: size, Limit: limit}
	}
	if budget.TooManyValues(put.Item.Body) || values.Elements() > budget.MostValues {
		return &TooLargeError{Values: true}
	}
	return nil
}
