package workflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/seam/workflow"
)

var startCases = []testCase{
	{"an execution goes from its input to its output", calls, func(f *fixture) {
		f.start("e1", `{"a":1}`)
		f.want(f.ended("e1"), workflow.Succeeded, `{"got":{"a":1}}`, "")
		f.wantCalls(1)
	}},
	{"the input may be any JSON value", passes, func(f *fixture) {
		for i, input := range []string{`"text"`, `17`, `1.50`, `null`, `[1,"ü"]`, `{}`, `{"big":12345678901234567890}`} {
			name := fmt.Sprint("e", i)
			f.start(name, input)
			f.want(f.ended(name), workflow.Succeeded, input, "")
		}
	}},
	{"starting again while it runs does nothing", calls, func(f *fixture) {
		through := make(chan struct{})
		f.answer(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-through
			return []byte(`1`), nil
		})
		f.start("e1", `{"a":1}`)
		f.await()
		f.start("e1", `{"a":1}`)
		f.start("e1", `{"a":2}`)
		if e := f.describe("e1"); e.Status != workflow.Running || string(e.Input) != `{"a":1}` {
			f.Errorf("got %s with input %s, want it running with the first input", e.Status, e.Input)
		}
		close(through)
		f.want(f.ended("e1"), workflow.Succeeded, `{"got":1}`, "")
		f.wantCalls(1)
	}},
	{"starting again after the end does nothing", calls, func(f *fixture) {
		f.start("e1", `{"a":1}`)
		before := f.ended("e1")
		f.start("e1", `{"a":1}`)
		f.start("e1", `{"a":2}`)
		after := f.describe("e1")
		f.want(after, before.Status, string(before.Output), "")
		if !after.Started.Equal(before.Started) || !after.Stopped.Equal(before.Stopped) || string(after.Input) != `{"a":1}` {
			f.Errorf("got %+v, before it was %+v", after, before)
		}
		f.wantCalls(1)
	}},
	{"of many who start together one does", calls, func(f *fixture) {
		var starts sync.WaitGroup
		for range 20 {
			starts.Go(func() {
				if err := f.Start(f.Context(), machine, "e1", []byte(`{}`)); err != nil {
					f.Error(err)
				}
			})
		}
		starts.Wait()
		f.want(f.ended("e1"), workflow.Succeeded, `{"got":{}}`, "")
		f.wantCalls(1)
	}},
	{"executions do not meet", calls, func(f *fixture) {
		var starts sync.WaitGroup
		for i := range 50 {
			starts.Go(func() {
				if err := f.Start(f.Context(), machine, fmt.Sprint("e", i), fmt.Append(nil, i)); err != nil {
					f.Error(err)
				}
			})
		}
		starts.Wait()
		for i := range 50 {
			f.want(f.ended(fmt.Sprint("e", i)), workflow.Succeeded, fmt.Sprintf(`{"got":%d}`, i), "")
		}
		f.wantCalls(50)
	}},
	{"a name is good once for each machine", passes, func(f *fixture) {
		f.start("e1", `1`)
		if err := f.Start(f.Context(), sibling, "e1", []byte(`2`)); err != nil {
			f.Fatal(err)
		}
		e, err := f.Describe(f.Context(), sibling, "e1")
		if err != nil || string(e.Input) != `2` || e.Machine != sibling {
			f.Errorf("got %+v and %v, want that of the other machine", e, err)
		}
		f.want(f.ended("e1"), workflow.Succeeded, `1`, "")
	}},
	{"the caller may use its memory again", calls, func(f *fixture) {
		through := make(chan struct{})
		f.answer(func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
			<-through
			return payload, nil
		})
		input := []byte(`{"a":1}`)
		if err := f.Start(f.Context(), machine, "e1", input); err != nil {
			f.Fatal(err)
		}
		clear(input)
		close(through)
		e := f.ended("e1")
		f.want(e, workflow.Succeeded, `{"got":{"a":1}}`, "")
		if string(e.Input) != `{"a":1}` {
			f.Errorf("got input %q, want what it was started with", e.Input)
		}
	}},
	{"names of 80 characters and of other scripts are good", passes, func(f *fixture) {
		for _, name := range []string{strings.Repeat("ü", 80), "A-b_c.9", "läuft", "a'b!()=@+"} {
			f.start(name, `{}`)
			f.want(f.ended(name), workflow.Succeeded, `{}`, "")
		}
	}},
	{"bad names, machines and inputs are refused", passes, func(f *fixture) {
		for what, c := range map[string]struct {
			machine     workflow.Machine
			name, input string
		}{
			"unknown machine": {"x", "e1", `{}`},
			"no machine":      {"", "e1", `{}`},
			"no name":         {machine, "", `{}`},
			"long name":       {machine, strings.Repeat("x", 81), `{}`},
			"space":           {machine, "a b", `{}`},
			"slash":           {machine, "a/b", `{}`},
			"sharp":           {machine, "a#b", `{}`},
			"colon":           {machine, "a:b", `{}`},
			"bell":            {machine, "a\a", `{}`},
			"no input":        {machine, "e1", ``},
			"not JSON":        {machine, "e1", `{`},
			"two values":      {machine, "e1", `{} {}`},
		} {
			if err := f.Start(f.Context(), c.machine, c.name, []byte(c.input)); err == nil {
				f.Errorf("%s: got no error", what)
			}
		}
		if _, err := f.Describe(f.Context(), machine, "e1"); !errors.Is(err, workflow.ErrNotFound) {
			f.Errorf("a refused execution: got %v, want %v", err, workflow.ErrNotFound)
		}
	}},
	{"errors name the execution once", passes, func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		_, err := f.Describe(ctx, machine, "some-name")
		for what, err := range map[string]error{
			"start":    f.Start(ctx, "x", "some-name", []byte(`{}`)),
			"stop":     f.Stop(ctx, machine, "some-name", ""),
			"describe": err,
		} {
			prefix := what + " execution some-name of "
			if err == nil || !strings.HasPrefix(err.Error(), prefix) || strings.Count(err.Error(), prefix) != 1 {
				f.Errorf("%s: got %v, want an error that begins with %q", what, err, prefix)
			}
		}
	}},
}
