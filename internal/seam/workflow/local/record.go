package local

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// retention is how long an execution stays readable after its end.
const retention = 24 * time.Hour

// Attributes of a stored execution.
const (
	attrKind    = "kind"
	attrSchema  = "schema"
	attrVersion = "version"
	attrStatus  = "status"
)

// record is the body of a stored execution.
type record struct {
	// The status is an attribute of the item.
	workflow.Execution
	position
	// Data is the input of the state at the position. It is nil while it still is the
	// execution's input.
	Data json.RawMessage `json:"data,omitempty"`
	// Resumed is set while the execution is in a state in which it was continued after a
	// server's death.
	Resumed *resumed `json:"resumed,omitempty"`
}

// position is the state in which a running execution is, and how far it is there.
type position struct {
	State   string    `json:"state,omitempty"`
	Entered time.Time `json:"entered,omitzero"`
	// Retries counts, for each retrier of the state, how often it has let the Task be tried
	// again.
	Retries []int `json:"retries,omitempty"`
	// RetryAt is when the next attempt begins. It is zero before the first failure.
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// item is the stored form of a record: a running one is in the index of running executions, an
// ended one expires.
func (r *record) item(status workflow.Status, version int64) (table.Item, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return table.Item{}, fmt.Errorf("encode execution: %w", err)
	}
	item := table.Item{
		Key:   keys.Execution(string(r.Machine), r.Name),
		Attrs: table.Attrs{attrKind: "execution", attrSchema: int64(1), attrVersion: version, attrStatus: string(status)},
		Body:  body,
	}
	if status == workflow.Running {
		item.Index = map[table.Index]table.Key{table.ByList: keys.RunningExecutionEntry(string(r.Machine), r.Name)}
	} else {
		item.Expires = r.Stopped.Add(retention)
	}
	return item, nil
}

func readRecord(item *table.Item) (*record, error) {
	r := new(record)
	if err := json.Unmarshal(item.Body, r); err != nil {
		return nil, fmt.Errorf("decode execution %v: %w", item.Key, err)
	}
	return r, nil
}

func statusOf(item *table.Item) workflow.Status { return workflow.Status(item.Text(attrStatus)) }

func (r *record) execution(status workflow.Status) workflow.Execution {
	described := r.Execution
	described.Status = status
	return described
}
