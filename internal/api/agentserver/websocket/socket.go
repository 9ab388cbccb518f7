// Package websocket speaks the thread-centric streaming protocol over a WebSocket. Each message of
// a client becomes a request to the agent server itself (package loopback). A subscription is a
// request for events whose handler finds the subscription in its context (Taking), and gives it the
// events before they are encoded. The tests are those of package agentserver
// (threadevents_socket_*test.go).
package websocket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
)

// The types of answers to commands, and the codes of errors, as the contract has them.
const (
	typeError   = "error"
	typeSuccess = "success"

	codeInvalidArgument    = "invalid_argument"
	codeNoSuchSubscription = "no_such_subscription"
	codePermissionDenied   = "permission_denied"
	codeUnknownError       = "unknown_error"
)

// Socket is a WebSocket that a client opens. Each message of the client stands for a request of its
// own, with the credentials of the request that opened the WebSocket: it is authorized, counted,
// checked, bounded and logged like a request over HTTP. Commands are answered in their order. A
// subscription is a stream of events, which become messages.
type Socket struct {
	// Client asks the server itself. Its path is the path of the thread.
	loopback.Client

	// Origins are the rules for pages of other origins.
	Origins *web.Origins
	// MaxMessage is the largest message of the client in bytes.
	MaxMessage int64
	// Heartbeat is the time between the messages that find out whether the client is there.
	Heartbeat time.Duration
	Now       clock.Clock
}

// VisitOpenThreadSocketResponse answers the request that opens the WebSocket. It implements
// agentserver.OpenThreadSocketResponseObject.
func (s Socket) VisitOpenThreadSocketResponse(w http.ResponseWriter) error {
	socket, err := s.Mux.Upgrade(w, s.Request, s.Origins, s.MaxMessage)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(s.Request.Context())
	c := &conversation{Socket: s, socket: socket, ctx: ctx, end: cancel, subscriptions: map[string]*subscription{}}
	c.work.Go(guard.Func(nil, "watch a WebSocket", func() { c.end(socket.Watch(ctx, s.Heartbeat)) }))
	c.work.Go(guard.Func(nil, "close a WebSocket", func() {
		<-ctx.Done()
		socket.Close(closeCode(context.Cause(ctx)))
	}))
	for err == nil {
		err = c.next()
	}
	c.end(err)
	c.work.Wait()
	return nil
}

// socketRefusal ends a conversation with a status: the server would refuse any request of the
// client.
type socketRefusal struct {
	status  int
	message string
}

func (e *socketRefusal) Error() string { return e.message }

// closeCode returns the code and the reason for the end of a conversation. Clients take a
// normal end for the end of a run, so no conversation ends normally. Clients do not reconnect
// if a status says that this would be useless.
func closeCode(why error) (code int, reason string) {
	if refused, ok := errors.AsType[*socketRefusal](why); ok {
		return web.CloseRefused + refused.status, refused.message
	}
	if fault.Is(why, fault.Unavailable) {
		return web.CloseRestart, why.Error()
	}
	return web.CloseFailure, "The connection is lost."
}

// conversation is a WebSocket while it is open.
type conversation struct {
	Socket

	socket *web.Socket
	// ctx ends with the conversation, and end ends it.
	ctx  context.Context
	end  context.CancelCauseFunc
	work sync.WaitGroup
	// command is the command that is not answered yet.
	command sync.WaitGroup
	// subscriptions are the client's subscriptions by their ids, without those that have
	// ended.
	mu            sync.Mutex
	subscriptions map[string]*subscription
	// order is the order of the events of all subscriptions.
	order order
}

// headBytes is how many bytes of a message are read before the server decides how to handle
// it. A command about a subscription is not longer than that.
const headBytes = 64 << 10

// socketCommand has the members of a message that decide how the message is handled.
type socketCommand struct {
	ID     *int64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// next takes the client's next message when the command before it is answered. Until then, the
// message is not read, so a client with many commands waits. An error ends the conversation.
func (c *conversation) next() error {
	// Close says why, and then ends the wait.
	message, err := c.socket.Next(context.WithoutCancel(c.ctx))
	c.command.Wait()
	if err != nil {
		return err
	}
	head, err := io.ReadAll(io.LimitReader(message, headBytes))
	if err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	var command socketCommand
	if json.Unmarshal(head, &command) != nil {
		command = socketCommand{} // the decoder leaves 0 in place of an id that it cannot read
	}
	if command.ID != nil {
		switch command.Method {
		case "subscription.subscribe":
			c.subscribe(command)
			return drain(message)
		case "subscription.unsubscribe":
			return errors.Join(c.unsubscribe(command), drain(message))
		}
	}
	c.command.Go(guard.Func(nil, "answer a command", func() {
		if err := c.execute(command, head, message); err != nil {
			c.end(err)
		}
	}))
	if len(head) == headBytes { // the command reads the rest of the message
		c.command.Wait()
	}
	return nil
}

// execute does a command of which the head was read. In the meantime next waits for a message,
// which also answers the client's pings. A client that leaves does not end its command.
func (c *conversation) execute(command socketCommand, head []byte, message io.Reader) error {
	var answer loopback.Answer
	if err := c.Mux.Ask(c.Request.Context(), &answer, c.Request, http.MethodPost, url.URL{Path: c.Path + "/commands"}, io.MultiReader(bytes.NewReader(head), message)); err != nil {
		return err
	}
	if err := drain(message); err != nil {
		return err
	}
	if answer.Status == http.StatusOK {
		return c.socket.Send(answer.Body.Bytes())
	}
	// The server would refuse any command with these answers.
	return c.refuse(command.ID, &answer, answer.Status == http.StatusUnauthorized || answer.Status == http.StatusNotFound)
}

// drain reads the rest of a message.
func drain(message io.Reader) error {
	if _, err := io.Copy(io.Discard, message); err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	return nil
}

// refuse answers a command with the protocol's form of an error of HTTP. If the error ends the
// conversation, refuse returns it.
func (c *conversation) refuse(id *int64, answer *loopback.Answer, ends bool) error {
	refused := &socketRefusal{answer.Status, answer.Message()}
	if err := c.answer(socketAnswer{Type: typeError, ID: id, Error: codeOf(answer.Status), Message: refused.message}); err != nil {
		return err
	}
	if ends {
		// The error becomes the cause with which the other subscriptions end. Because it is a
		// context.Canceled, too, their handlers do not log it.
		return fmt.Errorf("%w: %w", context.Canceled, refused)
	}
	return nil
}

// socketAnswer is a CommandAnswer to a command that may have had no id.
type socketAnswer struct {
	Type    string `json:"type"`
	ID      *int64 `json:"id"`
	Result  any    `json:"result,omitempty"`
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}

func (c *conversation) answer(answer socketAnswer) error {
	return c.socket.Send(record.Encode(answer))
}

// subscribe begins a stream of events. The command is answered when the stream begins.
func (c *conversation) subscribe(command socketCommand) {
	ctx, cancel := context.WithCancel(c.ctx)
	s := &subscription{of: c, command: command.ID, id: id.New(c.Now()), cancel: cancel, done: make(chan struct{})}
	// It joins before the next message is read: no later subscription sends the end of a run first.
	c.order.add(s)
	c.work.Go(guard.Func(nil, "read a subscription", func() {
		defer close(s.done)
		defer cancel()
		defer c.order.remove(s)
		// After the end of ctx, the client has ended the stream, or the conversation is over.
		if err := s.run(ctx, command.Params); err != nil && ctx.Err() == nil {
			c.end(err)
		}
	}))
}

// unsubscribe ends a stream of events: none of its events follows the answer.
func (c *conversation) unsubscribe(command socketCommand) error {
	var params struct {
		ID string `json:"subscription_id"`
	}
	_ = json.Unmarshal(command.Params, &params) // no subscription has the id ""
	c.mu.Lock()
	s := c.subscriptions[params.ID]
	c.mu.Unlock()
	if s == nil {
		return c.answer(socketAnswer{
			Type: typeError, ID: command.ID, Error: codeNoSuchSubscription, Message: fmt.Sprintf("There is no subscription %.64q.", params.ID),
		})
	}
	s.cancel()
	<-s.done
	return c.answer(socketAnswer{Type: typeSuccess, ID: command.ID, Result: map[string]any{}})
}

// subscription sends the events of a stream to the client.
type subscription struct {
	loopback.Answer

	of      *conversation
	command *int64
	id      string
	cancel  context.CancelFunc
	done    chan struct{}
}

// WriteHeader answers the command when the stream begins.
func (s *subscription) WriteHeader(status int) {
	s.Answer.WriteHeader(status)
	if s.Status != http.StatusOK {
		return
	}
	s.of.mu.Lock()
	s.of.subscriptions[s.id] = s
	s.of.mu.Unlock()
	// The protocol's replayed_events, which is optional and which no client reads, is left out: the
	// stream does not separate older events from new events.
	result := map[string]any{"subscription_id": s.id}
	if err := s.of.answer(socketAnswer{Type: typeSuccess, ID: s.command, Result: result}); err != nil {
		s.of.end(err)
	}
}

// run streams events until ctx ends. An error ends the conversation.
func (s *subscription) run(ctx context.Context, params []byte) error {
	err := s.of.Mux.Ask(context.WithValue(ctx, subscriptionKey{}, s), s, s.of.Request, http.MethodPost, url.URL{Path: s.of.Path + "/stream/events"}, bytes.NewReader(params))
	s.of.mu.Lock()
	delete(s.of.subscriptions, s.id)
	s.of.mu.Unlock()
	switch {
	case err != nil:
		return err
	case s.Status == http.StatusOK:
		return errors.New("a stream of events has ended")
	}
	// A client with a socket for each stream waits for events only: it must not wait in vain.
	return s.of.refuse(s.command, &s.Answer, s.Status != http.StatusUnprocessableEntity && s.Status != http.StatusForbidden)
}

type subscriptionKey struct{}

// Taking returns a function that sends events to the client, if the request is a subscription of a
// WebSocket.
func Taking(ctx context.Context) (take func(events []protocol.Event, next int64) error, ok bool) {
	s, ok := ctx.Value(subscriptionKey{}).(*subscription)
	if !ok {
		return nil, false
	}
	return s.taking(ctx), true
}

// taking returns a function that sends the events to the client. After that, it gives back the
// bytes that were counted for reading them.
func (s *subscription) taking(ctx context.Context) func(events []protocol.Event, next int64) error {
	hold := budget.HoldOf(ctx)
	hold.Endure()
	return func(events []protocol.Event, next int64) error {
		var text []byte
		for _, event := range events {
			if event.EndsRun() {
				if err := s.of.order.settle(ctx, s, event.Seq); err != nil {
					return err
				}
			}
			if err := s.of.order.turn(ctx, s, event.Seq); err != nil {
				return err
			}
			text = event.Append(text[:0])
			if err := s.of.socket.Send(text); err != nil {
				s.of.end(err)
				return err
			}
		}
		hold.Return(hold.Detach())
		s.of.order.reached(s, next)
		return nil
	}
}

// codeOf returns the protocol's code for an error of HTTP.
func codeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return codePermissionDenied
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return codeUnknownError
	}
	return codeInvalidArgument
}
