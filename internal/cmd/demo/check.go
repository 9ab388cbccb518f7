package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/cmd/output"
)

// conversation holds what the demo has seen of a thread.
type conversation struct {
	first, second *turn
	messages      []output.Message
}

// check returns the errors in the ends of the runs and in the thread. The exact order of
// messages is known only for the example agent. For other agents, check requires both
// questions in order, and an answer to the last question.
func (c conversation) check(example bool) error {
	problems := slices.Concat(c.checkRuns(), c.checkShown())
	if example {
		problems = append(problems, c.checkShapes()...)
	} else {
		problems = append(problems, c.checkQuestions()...)
	}
	if len(problems) > 0 {
		return errors.New("the thread does not read as expected: " + strings.Join(problems, "; "))
	}
	return nil
}

func (c conversation) checkRuns() []string {
	var problems []string
	if c.first.status != "interrupted" {
		problems = append(problems, fmt.Sprintf("run 1 is %q, not interrupted", c.first.status))
	}
	if c.second.status != "success" {
		problems = append(problems, fmt.Sprintf("run 2 is %q, not success", c.second.status))
	}
	if len(c.first.joined) == 0 || c.first.joined[0].Content != output.Content(c.first.question) {
		problems = append(problems, "joining run 1 did not answer its messages")
	}
	if got, want := shapes(c.second.joined), shapes(c.messages); !slices.Equal(got, want) {
		problems = append(problems, fmt.Sprintf("joining run 2 answered %s, the thread's state is %s", list(got), list(want)))
	}
	return problems
}

// checkShown compares the shown part of the interrupted answer with its stored part.
func (c conversation) checkShown() []string {
	var problems []string
	for id, shown := range c.first.pieces {
		kept := slices.IndexFunc(c.messages, func(m output.Message) bool { return m.ID == id })
		switch {
		case kept < 0:
			problems = append(problems, fmt.Sprintf("%q was shown and is not in the thread", shown))
		case string(c.messages[kept].Content) != shown:
			problems = append(problems, fmt.Sprintf("%q was shown, %q is in the thread", shown, c.messages[kept].Content))
		case !c.messages[kept].Metadata.Incomplete:
			problems = append(problems, fmt.Sprintf("%q is not marked as incomplete", shown))
		}
	}
	return problems
}

// checkShapes compares the thread with the thread of the example agent.
func (c conversation) checkShapes() []string {
	want := []string{output.Human, "ai tool call", output.Tool}
	if len(c.first.pieces) > 0 {
		want = append(want, "ai (incomplete)")
	}
	want = append(want, output.Human, "ai tool call", output.Tool, output.AI)
	if got := shapes(c.messages); !slices.Equal(got, want) {
		return []string{fmt.Sprintf("it is %s, not %s", list(got), list(want))}
	}
	return c.checkQuestions()
}

// checkQuestions looks for both questions, which must occur once each and in order, and for an
// answer at the end.
func (c conversation) checkQuestions() []string {
	var questions []string
	for _, message := range c.messages {
		if message.Type == output.Human {
			questions = append(questions, string(message.Content))
		}
	}
	var problems []string
	if want := []string{c.first.question, c.second.question}; !slices.Equal(questions, want) {
		problems = append(problems, fmt.Sprintf("the questions in it are %q, not %q", questions, want))
	}
	if len(c.messages) == 0 || c.messages[len(c.messages)-1].Shape() != output.AI {
		problems = append(problems, "it does not end with an answer")
	}
	return problems
}

func shapes(messages []output.Message) []string {
	var shapes []string
	for _, message := range messages {
		shapes = append(shapes, message.Shape())
	}
	return shapes
}

func list(shapes []string) string { return "[" + strings.Join(shapes, ", ") + "]" }
