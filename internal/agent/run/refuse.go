package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Refusal is why an answer to questions was refused.
type Refusal struct {
	// Interrupts are the questions that the answer names, without the questions that the thread
	// waited on. Pending are the questions that the thread waited on.
	Interrupts []string `json:"interrupt_ids"`
	Pending    []string `json:"pending_ids"`
}

// failureUnknownInterrupt is the name of the failure of a refused run: clients of the public
// service know this name.
const failureUnknownInterrupt = "UnknownInterruptError"

// Bounds of the ids in a refused answer, because they are stored with the run.
const (
	maxRefused   = 100
	maxRefusedID = 256 // bytes
)

// ErrAnswerAwaited says that a thread now waits for an answer that was to be refused.
var ErrAnswerAwaited = errors.New("the thread waits for the answer")

// Refuse creates a run that has failed already, for a strict request that Create has refused:
// clients learn from the run's end that their answer came too late. The thread stays as it is,
// with its questions and its active run. If the thread has come to wait for the answer meanwhile,
// Refuse returns ErrAnswerAwaited, and the caller creates the run again. The observer and the
// webhook get no notification of a refused run: no agent has worked on it.
func (s *Store) Refuse(ctx context.Context, ref thread.Ref, request Request) (Run, error) {
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return Run{}, err
	}
	if err := s.Threads.CheckRoom(ctx, ref.Workspace, request.size()); err != nil {
		return Run{}, err
	}
	return decideOn(ctx, s, t, func(ctx context.Context, t thread.Thread) (run Run, o record.Outbox, err error) {
		if checkAnswer(t, request) == nil {
			return run, o, ErrAnswerAwaited
		}
		refused, err := refusal(t, request)
		if err != nil {
			return run, o, err
		}
		delayed, err := s.delayedActive(ctx, t)
		if err != nil {
			return run, o, err
		}
		if run, err = s.newRun(t, request, delayed != nil, false); err != nil {
			return run, o, err
		}
		run.Status, run.Answers, run.Refusal = Error, nil, refused
		run.Failure = &Failure{Name: failureUnknownInterrupt, Message: fmt.Sprintf(
			"The thread does not wait for an answer to the interrupt %.200s.", strings.Join(run.Refusal.Interrupts, ", "),
		)}
		change := t.ChangeLock(s.Now())
		t.MarkNewest(&change, run.Run, run.Created, false)
		o.Add(change)
		o.Add(s.putRun(run, false)...)
		return run, o, nil
	})
}

// refusal returns a fault.Invalid if the answer names too many questions that the thread does not
// wait on, or such a question with a long id.
func refusal(t thread.Thread, request Request) (*Refusal, error) {
	refused := &Refusal{Interrupts: []string{}, Pending: append([]string{}, openQuestions(t)...)}
	members, err := state.Members(resumeOf(request))
	if err != nil {
		return refused, nil //nolint:nilerr // the answer is no object, so it names no question
	}
	for _, member := range members {
		if slices.Contains(refused.Pending, member.Name) {
			continue
		}
		if len(member.Name) > maxRefusedID {
			return nil, fault.New(fault.Invalid, "The interrupt_id %.40q... has %d bytes: the limit is %d.", member.Name, len(member.Name), maxRefusedID)
		}
		refused.Interrupts = append(refused.Interrupts, member.Name)
	}
	if len(refused.Interrupts) > maxRefused {
		return nil, fault.New(fault.Invalid,
			"The answer has %d values of interrupt_id that the thread does not wait on: the limit is %d.", len(refused.Interrupts), maxRefused)
	}
	return refused, nil
}
