package model

import (
	"encoding/json"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
)

// ShowThread returns a thread in the form that the interface has, without its values.
func ShowThread(t thread.Thread) Thread {
	return Thread{
		ThreadID:   t.Thread,
		Status:     ThreadStatus(t.Status),
		Metadata:   t.Metadata,
		Config:     configOf(t),
		Values:     null,
		Error:      null,
		Interrupts: interrupts(t.Interrupts),
		CreatedAt:  clock.Format(t.Created),
		UpdatedAt:  clock.Format(t.Updated),
	}
}

// configOf returns the configuration of a thread's runs, which is an empty one if a run had none.
func configOf(t thread.Thread) json.RawMessage {
	switch {
	case t.Config != nil:
		return t.Config
	case t.Lock.Run != "":
		return json.RawMessage(`{"configurable":{}}`)
	}
	return emptyObject
}

// interrupts returns the interrupts of a thread by task.
func interrupts(raw json.RawMessage) map[string][]Interrupt {
	byTask := map[string][]Interrupt{}
	for _, task := range askingTasks(raw) {
		byTask[task.Name] = interruptsOf(state.OneOrMany(task.Value))
	}
	return byTask
}

// askingTasks returns the tasks of stored interrupts in their order, with the interrupts.
func askingTasks(raw json.RawMessage) []state.Member {
	tasks, err := state.Members(raw)
	if err != nil {
		return nil // there are none
	}
	return tasks
}

// interruptsOf reads stored interrupts. Values stored before interrupts were validated are omitted
// if they are not valid interrupts.
func interruptsOf(stored []json.RawMessage) []Interrupt {
	read := []Interrupt{}
	for _, raw := range stored {
		var q Interrupt
		if json.Unmarshal(raw, &q) == nil {
			q.ResponseSchema = state.Present(q.ResponseSchema)
			read = append(read, q)
		}
	}
	return read
}

// Questions returns the interrupts of all tasks, in the order of the tasks.
func Questions(raw json.RawMessage) []Interrupt {
	all := []Interrupt{}
	for _, task := range askingTasks(raw) {
		all = append(all, interruptsOf(state.OneOrMany(task.Value))...)
	}
	return all
}

// ReadTTL reads a time to live, which is a number of minutes, or an object; nil if there is no
// time to live.
func ReadTTL(raw json.RawMessage) (*thread.TTL, error) {
	if state.Present(raw) == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	ttl := thread.TTL{Strategy: thread.StrategyDelete}
	if json.Unmarshal(raw, &ttl.Minutes) == nil {
		return &ttl, nil
	}
	var sent ThreadTTL
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, err
	}
	ttl.Minutes, ttl.Strategy = sent.TTL, thread.Strategy(optional.Or(sent.Strategy, PruneStrategyDelete))
	return &ttl, nil
}
