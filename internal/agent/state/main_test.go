package state_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/test/check"
)

// parse reads a state.
func parse(t testing.TB, raw string) state.Values {
	t.Helper()
	v, _, err := state.Values{}.Replace(json.RawMessage(raw))
	check.Must(t, err)
	return v
}

// reduce folds an update into the state; messages without an id get new-1, new-2, ...
func reduce(t testing.TB, v state.Values, update string) state.Values {
	t.Helper()
	next, _, err := reduceRaw(v, json.RawMessage(update), counter())
	check.Must(t, err)
	return next
}

// reduceRaw folds an update that may be no update into the state.
func reduceRaw(v state.Values, update json.RawMessage, newID func() string) (state.Values, state.Patch, error) {
	coerced, err := state.Coerce(update, newID)
	if err != nil {
		return v, state.Patch{}, err
	}
	next, patch := v.Reduce(coerced)
	return next, patch, nil
}

// counter returns a source of ids.
func counter() func() string {
	n := 0
	return func() string {
		n++
		return "new-" + strconv.Itoa(n)
	}
}

// stored returns the patch as it is after it was stored and read.
func stored(t testing.TB, p state.Patch) state.Patch {
	t.Helper()
	raw, err := json.Marshal(p)
	check.Must(t, err)
	var back state.Patch
	check.Must(t, json.Unmarshal(raw, &back))
	return back
}

// size is how many bytes a patch takes in storage.
func size(t testing.TB, p state.Patch) int {
	t.Helper()
	raw, err := json.Marshal(p)
	check.Must(t, err)
	return len(raw)
}
