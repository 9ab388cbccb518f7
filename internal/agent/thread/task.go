package thread

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Task is a task of an agent's checkpoint, as the agent reports it.
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

// TasksOf reads the tasks of a checkpoint. It leaves out elements that are no tasks.
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

// InterruptsOf returns the questions of a checkpoint's tasks: a JSON object by task id, nil if
// there are no questions. It leaves out questions that CheckTasks refuses.
func InterruptsOf(c Checkpoint) json.RawMessage {
	questions, _ := questionsOf(c.Tasks)
	return questions.JSON()
}

// CheckTasks returns an error if the questions of a checkpoint's tasks could not be stored.
func CheckTasks(tasks json.RawMessage) error {
	_, err := questionsOf(tasks)
	return err
}

// questionsOf returns the questions of tasks up to the bound, without values that are no
// questions, and an error about the values that it left out.
func questionsOf(tasks json.RawMessage) (questions Questions, err error) {
	for _, t := range TasksOf(tasks) {
		for _, question := range t.Interrupts {
			err = errors.Join(err, questions.Add(t.ID, question))
		}
	}
	return questions, err
}

// maxQuestions is how many bytes the questions of a pause may hold: they are stored on the run
// itself, which must stay small.
const maxQuestions = 128 << 10

// Questions are the questions of a graph that paused, by task. The zero value has no
// questions.
type Questions struct {
	byTask map[string][]json.RawMessage
	// tasks are the tasks in the order in which they ask: clients show the questions in it.
	tasks []string
	size  int
}

// QuestionID returns the id of a question. The question must be an object that clients can
// read.
func QuestionID(question json.RawMessage) (string, error) {
	var head struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(question, &head); err != nil {
		return "", fmt.Errorf("a question is no object whose id is a text: %.40s", question)
	}
	return head.ID, nil
}

// QuestionIDs returns the sorted ids of the questions in an object of lists by task. A question
// without an id is left out.
func QuestionIDs(interrupts json.RawMessage) []string {
	var byTask map[string][]json.RawMessage
	if len(interrupts) == 0 || json.Unmarshal(interrupts, &byTask) != nil {
		return nil
	}
	var ids []string
	for _, questions := range byTask {
		for _, question := range questions {
			if id, err := QuestionID(question); err == nil && id != "" {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Add adds a question. It returns an error if the value is no question, or if the questions
// would be too large.
func (q *Questions) Add(task string, question json.RawMessage) error {
	if _, err := QuestionID(question); err != nil {
		return err
	}
	size := q.size + len(task) + len(question)
	if size > maxQuestions {
		return fmt.Errorf("the questions of a pause hold %d bytes: the limit is %d", size, maxQuestions)
	}
	if q.byTask == nil {
		q.byTask = map[string][]json.RawMessage{}
	}
	if q.byTask[task] == nil {
		q.tasks = append(q.tasks, task)
	}
	q.byTask[task], q.size = append(q.byTask[task], question), size
	return nil
}

// JSON returns an object of lists by task, in the order of the tasks; nil if there is no question.
func (q *Questions) JSON() json.RawMessage {
	if len(q.byTask) == 0 {
		return nil
	}
	all := []byte{'{'}
	for _, task := range q.tasks {
		all = state.AppendMember(all, state.Member{Name: task, Value: record.Encode(q.byTask[task])})
	}
	return append(all, '}')
}
