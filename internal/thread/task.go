package thread

import (
	"encoding/json"

	"github.com/slipway-run/slipway/internal/record"
)

// Task is a task of an agent's checkpoint, as the agent says it.
type Task struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Error      *string           `json:"error"`
	Interrupts []json.RawMessage `json:"interrupts"`
	Checkpoint *struct {
		NS string `json:"checkpoint_ns"`
		ID string `json:"checkpoint_id"`
	} `json:"checkpoint"`
	Result json.RawMessage `json:"result"`
	Path   json.RawMessage `json:"path"`
}

// TasksOf reads the tasks of a checkpoint; what is none is left out.
func TasksOf(raw json.RawMessage) []Task {
	var list []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var tasks []Task
	for _, one := range list {
		var t Task
		if json.Unmarshal(one, &t) == nil && t.ID != "" {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// InterruptsOf are the questions of a checkpoint's tasks: a JSON object by task id, nil when there are none.
func InterruptsOf(c Checkpoint) json.RawMessage {
	asked := map[string][]json.RawMessage{}
	for _, t := range TasksOf(c.Tasks) {
		if len(t.Interrupts) > 0 {
			asked[t.ID] = t.Interrupts
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return record.Encode(asked)
}
