package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const (
	prompt = "> "
	// interrupted marks an answer that was interrupted.
	interrupted = " [interrupted]"
	ctrlC       = 0x03
	enter       = '\r'
	// up moves the cursor to the line above, and wipe clears the cursor's line.
	up, wipe = "\x1b[1A", "\r\x1b[2K"
)

// screen shows an answer above the line in which a person types.
type screen struct {
	terminal *term.Terminal
	// width is how many columns the terminal has. A Chinese character or an emoji takes two.
	width int
	// line is the last line of the answer, which is redrawn as it grows; "" if there is no
	// such line.
	line string
	err  error
}

// add adds a piece of an answer.
func (s *screen) add(piece string) {
	for i, part := range strings.Split(piece, "\n") {
		if i > 0 {
			s.end()
		}
		for _, r := range output.Plain(part) {
			if runewidth.StringWidth(s.line+string(r)) >= s.width {
				s.wrap()
			}
			s.grow(string(r))
		}
	}
	s.draw()
}

// grow adds to the line. If the line is new, grow makes room for it.
func (s *screen) grow(text string) {
	if s.line == "" {
		s.write("\n")
	}
	s.line += text
}

// wrap begins a new line with the last word, if a part of the word is in the line.
func (s *screen) wrap() {
	word := ""
	if at := strings.LastIndexByte(s.line, ' '); at > 0 && runewidth.StringWidth(s.line[:at]) > s.width/2 {
		s.line, word = s.line[:at], s.line[at+1:]
	}
	s.draw()
	s.line = ""
	if word != "" {
		s.grow(word)
	}
}

// draw redraws the growing line. The terminal keeps the typed text below it.
func (s *screen) draw() {
	if s.line != "" {
		s.write(up + wipe + s.line + "\n")
	}
}

// end ends the growing line.
func (s *screen) end() {
	s.draw()
	s.line = ""
}

// mark ends an answer that was interrupted.
func (s *screen) mark() {
	if s.line == "" {
		s.say(strings.TrimSpace(interrupted))
		return
	}
	s.line = strings.TrimRight(s.line, " ")
	s.add(interrupted)
	s.end()
}

// forget removes the text that was typed last, which is above the line that is being typed.
func (s *screen) forget(typed string) {
	lines := 1 + runewidth.StringWidth(prompt+typed)/s.width
	s.write(strings.Repeat(up, lines-1) + up + "\r\x1b[J")
}

// say shows the text as a separate line.
func (s *screen) say(text string) {
	s.end()
	for line := range strings.SplitSeq(text, "\n") {
		s.write(output.Plain(line) + "\n")
	}
}

func (s *screen) write(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.terminal, text)
	}
}

// keyboard passes on the typed bytes, except Ctrl-C, which it counts.
type keyboard struct {
	io.Reader
	stops chan<- struct{}
	// entered is set when a line was ended, which the terminal shows at once.
	entered *atomic.Bool
}

func (k keyboard) Read(p []byte) (int, error) {
	n, err := k.Reader.Read(p)
	kept := p[:0]
	for _, b := range p[:n] {
		if b == enter {
			k.entered.Store(true)
		}
		if b != ctrlC {
			kept = append(kept, b)
			continue
		}
		select {
		case k.stops <- struct{}{}:
		default:
		}
	}
	return len(kept), err
}

// live talks to a person at a terminal.
func (c *conversation) live(ctx context.Context, in, out *os.File) (err error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("use the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(int(in.Fd()), state)) }()
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width < 20 {
		width, height = 80, 24
	}
	stops, entered := make(chan struct{}, 2), new(atomic.Bool)
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keyboard{in, stops, entered}, out}, prompt)
	if err := terminal.SetSize(width, height); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &talk{conversation: c, screen: &screen{terminal: terminal, width: width}, stops: stops, entered: entered, lines: make(chan string), events: make(chan heardOf)}
	go t.read(ctx)
	return t.run(ctx)
}

// heardOf is a part of one answer; over reports that the answer has ended.
type heardOf struct {
	client.Part
	of   *answer
	over bool
	err  error
}

// talk is a conversation at a terminal. Answers are shown one after the other: the answer to
// an interrupting question follows when the whole interrupted answer is shown.
type talk struct {
	*conversation
	screen *screen
	stops  chan struct{}
	// entered is set while a typed line has not been sent as a question yet.
	entered *atomic.Bool
	lines   chan string
	events  chan heardOf
	// answers holds the answers that have not ended; the first answer is shown.
	answers []*answer
	stopped bool
	// open is the id of the message that grows.
	open string
}

// read reads the lines that a person types, until the person ends the input.
func (t *talk) read(ctx context.Context) {
	defer close(t.lines)
	for {
		line, err := t.screen.terminal.ReadLine()
		if err != nil {
			return
		}
		select {
		case t.lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

func (t *talk) run(ctx context.Context) error {
	t.screen.say("thread " + t.thread + ". Enter asks, and interrupts an answer; Ctrl-C ends an answer, Ctrl-D the chat.")
	messages, err := t.agent.messages(ctx, t.thread)
	if err != nil {
		return err
	}
	if len(messages) > 0 {
		t.screen.say(strings.TrimSuffix(output.Thread(messages), "\n"))
	}
	t.showQuestion()
	for t.screen.err == nil {
		select {
		case line, ok := <-t.lines:
			if !ok {
				return nil
			}
			if err := t.ask(ctx, line); err != nil {
				return err
			}
		case event := <-t.events:
			if ended, err := t.handle(ctx, event); ended || err != nil {
				return err
			}
		case <-t.stops:
			if done, err := t.stop(ctx); done || err != nil {
				return err
			}
		case <-ctx.Done():
			return exit.ErrInterrupted
		}
	}
	return t.screen.err
}

// handle handles an event, after the lines that were typed before it: a typed line stands above
// the growing line until it is sent as a question. It reports whether the lines have ended.
func (t *talk) handle(ctx context.Context, event heardOf) (ended bool, err error) {
	if t.entered.Load() {
		line, ok := <-t.lines
		if !ok {
			return true, nil
		}
		if err := t.ask(ctx, line); err != nil {
			return false, err
		}
	}
	return false, t.hear(ctx, event)
}

// ask starts a run. It interrupts a run that is under way, and the question is shown after the
// whole interrupted answer is shown.
func (t *talk) ask(ctx context.Context, typed string) error {
	t.entered.Store(false)
	question := strings.TrimSpace(typed)
	if question == "" || len(t.answers) > 0 {
		t.screen.forget(typed)
	}
	if question == "" {
		return nil
	}
	t.stopped = false
	next, err := t.say(ctx, question)
	if refused, ok := errors.AsType[replyError](err); ok {
		t.screen.say(refused.Error())
		return nil
	}
	if err != nil {
		return err
	}
	next.question = question
	t.answers = append(t.answers, next)
	if len(t.answers) == 1 {
		t.listen(ctx)
	}
	return nil
}

// listen listens to the first answer.
func (t *talk) listen(ctx context.Context) {
	of := t.answers[0]
	go func() {
		send := func(event heardOf) {
			select {
			case t.events <- event:
			case <-ctx.Done():
			}
		}
		err := of.listen(ctx, func(part client.Part) { send(heardOf{Part: part, of: of}) })
		send(heardOf{of: of, over: true, err: err})
	}()
}

// hear shows a part of the first answer.
func (t *talk) hear(ctx context.Context, event heardOf) error {
	switch {
	case event.err != nil:
		return event.err
	case event.over:
		return t.over(ctx)
	case event.Failure != "":
		t.screen.say(event.of.failure(event.Failure).Error())
	case event.Token != "":
		if event.ID != t.open {
			t.screen.end()
			t.open = event.ID
		}
		t.screen.add(event.Token)
	case event.Message != nil:
		t.screen.say(fmt.Sprintf("%-4s %s", event.Message.Type, event.Message.Text()))
	}
	return nil
}

// over marks an answer that was interrupted, and turns to the next.
func (t *talk) over(ctx context.Context) error {
	status, err := t.answers[0].status(ctx)
	if err != nil {
		return err
	}
	if status == "interrupted" {
		t.screen.mark()
	}
	t.screen.end()
	t.answers = t.answers[1:]
	if len(t.answers) > 0 {
		t.screen.say(prompt + t.answers[0].question)
		t.listen(ctx)
		return nil
	}
	if t.questions, err = t.agent.questions(ctx, t.thread); err != nil {
		return err
	}
	t.showQuestion()
	return nil
}

// showQuestion shows the question that the next line answers, if there is one.
func (t *talk) showQuestion() {
	if len(t.questions) > 0 {
		text, hint := t.questions[0].text()
		t.screen.say("The agent asks: " + text + "\n" + hint)
	}
}

// stop ends the answer that is being written, or the chat if there is no such answer or it was
// ended already.
func (t *talk) stop(ctx context.Context) (done bool, err error) {
	if len(t.answers) == 0 || t.stopped {
		return true, nil
	}
	t.stopped = true
	return false, t.answers[len(t.answers)-1].stop(ctx)
}
