package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const chatLong = `Talk to the agent of a deployment. The answer is shown while the agent writes it. A line that you
enter meanwhile interrupts the answer: the shown part stays in the thread, and the new answer
follows. Ctrl-C ends the answer, and a second Ctrl-C, or Ctrl-D, ends the chat. If the agent
asks a question, the next line is its answer.

Without a terminal, or if $TERM is dumb, each line of stdin is a question. The next question is asked
when the answer is complete. Ctrl-C then ends the answer and the command. The end of the program
that reads stdout does the same, as soon as the agent writes more.`

// abandonLimit is how long the end of an answer may take when the command ends before it.
const abandonLimit = 10 * time.Second

func newChat() *cobra.Command {
	var where Where
	var thread, assistant, message string
	var asJSON bool
	cmd := where.asks(&cobra.Command{Use: "chat DEPLOYMENT", Short: "Talk to an agent, and interrupt it", Long: chatLong}, cobra.ExactArgs(1),
		func(cmd *cobra.Command, server *api, args []string) error {
			if thread != "" && !id.Valid(thread) {
				return exit.Usagef("--thread must be the id of a thread, not %q", thread)
			}
			if cmd.Flags().Changed("message") && strings.TrimSpace(message) == "" {
				return exit.Usagef("--message must hold a question")
			}
			c, err := newConversation(cmd.Context(), server, args[0], thread, assistant)
			if err != nil {
				return err
			}
			in, ok := cmd.InOrStdin().(*os.File)
			typed := message == "" && ok && term.IsTerminal(int(in.Fd()))
			if typed {
				// The thread tells a person that the chat is ready.
				if err := c.begin(cmd.Context()); err != nil {
					return err
				}
			}
			if out, ok := cmd.OutOrStdout().(*os.File); typed && ok && !asJSON && output.CanMove(out) {
				return c.live(cmd.Context(), in, out)
			}
			// A closed pipe is an error of the output, and not the sudden end of the command.
			signal.Ignore(syscall.SIGPIPE)
			ctx, stop := context.WithCancelCause(cmd.Context())
			defer stop(nil)
			printer := c.prints(printout{cmd.OutOrStdout(), stop}, cmd.ErrOrStderr(), asJSON)
			return cmp.Or(c.script(ctx, message, cmd.InOrStdin()), printer.Close())
		})
	flags := cmd.Flags()
	flags.StringVar(&thread, "thread", "", "id of a thread to go on with (default: a new one)")
	flags.StringVar(&assistant, "assistant", "", "assistant or graph to talk to (default: agent, or the first)")
	flags.StringVarP(&message, "message", "m", "", "ask this, print the answer, and end")
	flags.BoolVar(&asJSON, "json", false, "print everything that happens on stdout, one JSON object per line")
	return cmd
}

// conversation is a thread in which a person talks.
type conversation struct {
	agent             *agent
	thread, assistant string
	// show gets the events, and stdout the answers and questions, unless they are events, too.
	show   func(output.Event)
	stdout io.Writer
	asJSON bool
	// runs counts the runs.
	runs int
	// questions are the questions of the graph that wait for an answer.
	questions []question
}

// newConversation finds the thread, if there is one already.
func newConversation(ctx context.Context, server *api, deployment, thread, assistant string) (*conversation, error) {
	agent, err := server.agent(ctx, deployment)
	if err != nil {
		return nil, err
	}
	c := &conversation{agent: agent, thread: thread}
	if c.assistant, err = agent.assistant(ctx, assistant); err != nil {
		return nil, err
	}
	if thread != "" {
		c.questions, err = agent.questions(ctx, thread)
	}
	return c, err
}

// begin makes a thread, unless there is one.
func (c *conversation) begin(ctx context.Context) error {
	if c.thread != "" {
		return nil
	}
	var created struct {
		ID string `json:"thread_id"`
	}
	err := c.agent.do(ctx, http.MethodPost, c.agent.path+"/threads", map[string]any{}, &created)
	c.thread = created.ID
	return err
}

// prints makes the conversation print what happens. The caller closes the printer at the end.
func (c *conversation) prints(stdout, stderr io.Writer, asJSON bool) output.Printer {
	printer := output.Choose(stderr, stderr, false)
	if asJSON {
		printer = output.NewJSON(stdout)
	}
	c.show, c.stdout, c.asJSON = output.Timed(printer), stdout, asJSON
	return printer
}

// printout is an output whose first error ends the command: nobody reads the rest.
type printout struct {
	io.Writer

	stop context.CancelCauseFunc
}

func (p printout) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	if err != nil {
		p.stop(unprintedError{err})
	}
	return n, err
}

// unprintedError says why an answer cannot be printed.
type unprintedError struct{ error }

func (e unprintedError) Error() string { return "the answer cannot be printed: " + e.error.Error() }

// script asks the message, or without a message the lines in turn, after the question that waits
// already. Only the agent's answers and questions go to stdout. Without a line there is no thread.
func (c *conversation) script(ctx context.Context, message string, lines io.Reader) (err error) {
	if c.thread != "" {
		c.show(output.Event{Kind: output.KindThread, Thread: c.thread})
	}
	if message != "" {
		err = c.turn(ctx, strings.TrimSpace(message))
	} else if err = c.ask(); err == nil {
		err = c.turns(ctx, lines)
	}
	if err != nil {
		c.show(output.Event{Kind: output.KindResult, Status: "failed", Text: err.Error(), Thread: c.thread})
		return err
	}
	if c.asJSON {
		c.show(output.Event{Kind: output.KindResult, Status: "succeeded", Thread: c.thread})
	}
	return nil
}

// turns says each line that is not empty.
func (c *conversation) turns(ctx context.Context, lines io.Reader) error {
	said := bufio.NewScanner(lines)
	said.Buffer(nil, math.MaxInt) // the server bounds a message, not this command
	for said.Scan() {
		if line := strings.TrimSpace(said.Text()); line != "" {
			if err := c.turn(ctx, line); err != nil {
				return err
			}
		}
	}
	return said.Err()
}

// turn says a text and prints the answer, and the question that the graph then waits for.
func (c *conversation) turn(ctx context.Context, text string) error {
	if c.thread == "" {
		if err := c.begin(ctx); err != nil {
			return err
		}
		c.show(output.Event{Kind: output.KindThread, Thread: c.thread})
	}
	answer, err := c.say(ctx, text)
	if err != nil {
		return err
	}
	c.runs++
	if c.asJSON {
		c.show(output.Event{Kind: output.KindRun, Run: c.runs, RunID: answer.ID, Text: text})
	}
	if err := c.hear(ctx, answer); err != nil {
		if ctx.Err() != nil {
			why := exit.ErrInterrupted
			if unprinted, ok := errors.AsType[unprintedError](context.Cause(ctx)); ok {
				why = unprinted
			}
			return errors.Join(why, c.abandon(ctx, answer))
		}
		return err
	}
	if c.questions, err = c.agent.questions(ctx, c.thread); err != nil {
		return err
	}
	return c.ask()
}

// abandon ends the answer of a command that ends before the answer: nobody would read the rest.
func (c *conversation) abandon(ctx context.Context, answer *answer) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonLimit)
	defer cancel()
	if err := answer.stop(ctx); err != nil {
		return fmt.Errorf("run %s may go on: %w", answer.ID, err)
	}
	c.show(output.Event{Kind: output.KindNote, Text: "the answer has ended; what was shown stays in the thread"})
	return nil
}

// ask prints the first question that waits, if there is one: the next line answers it.
func (c *conversation) ask() error {
	if len(c.questions) == 0 {
		return nil
	}
	text, hint := c.questions[0].text()
	if c.asJSON {
		c.show(output.Event{Kind: output.KindQuestion, Thread: c.thread, Name: c.questions[0].ID, Text: text})
		return nil
	}
	c.show(output.Event{Kind: output.KindNote, Text: hint})
	_, err := io.WriteString(c.stdout, output.Plain(text)+"\n")
	return err
}

// hear prints the answer of a run until the run has ended.
func (c *conversation) hear(ctx context.Context, answer *answer) (err error) {
	said := false
	write := func(text string) {
		said = true
		if !c.asJSON && err == nil {
			_, err = io.WriteString(c.stdout, text)
		}
	}
	open := "" // the message whose pieces are printed
	var failed error
	listened := answer.listen(ctx, func(part client.Part) {
		switch {
		case part.Failure != "":
			failed = answer.failure(part.Failure)
		case part.Token != "" && c.asJSON:
			c.show(output.Event{Kind: output.KindToken, Run: c.runs, RunID: answer.ID, Text: part.Token})
		case part.Token != "":
			if open != "" && open != part.ID {
				write("\n")
			}
			write(output.Plain(part.Token))
			open = part.ID
		case c.asJSON:
			c.show(output.Event{Kind: output.KindMessage, Run: c.runs, RunID: answer.ID, Messages: []output.Message{*part.Message}})
		case part.Message.Type == output.AI && part.Message.Content != "":
			write(output.Plain(string(part.Message.Content)) + "\n")
		}
	})
	if open != "" {
		write("\n")
	}
	if err = errors.Join(listened, failed, err); err != nil {
		return err
	}
	return c.tellEnd(ctx, answer, said)
}

// tellEnd tells how a run has ended, whose answer was printed if there was one.
func (c *conversation) tellEnd(ctx context.Context, answer *answer, said bool) error {
	status, err := answer.status(ctx)
	switch {
	case c.asJSON:
		c.show(output.Event{Kind: output.KindRunEnd, Run: c.runs, RunID: answer.ID, Status: status})
	case !said && status == "success":
		c.show(output.Event{Kind: output.KindNote, Text: fmt.Sprintf("run %s has ended without a message; slipway threads show %s %s --json prints the state",
			answer.ID, c.agent.name, c.thread)})
	}
	return err
}
