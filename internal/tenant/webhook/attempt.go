package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// next is the answer of a step. It tells the state machine what to do.
type next struct {
	Next string `json:"next"`
	// Due is the time until which the machine waits.
	Due string `json:"due,omitempty"`
}

const (
	wait = "Wait"
	done = "Done"
)

// stepCondemn is the step that gives a delivery up.
const stepCondemn = "Condemn"

// Task is the workflow.TaskFunc of the machine. It makes the attempt that is due, or gives the
// delivery up.
func (s *Store) Task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var t struct {
		DeliveryRef

		Step string `json:"step"`
	}
	if err := json.Unmarshal(input, &t); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	answer, err := s.attempt(ctx, t.DeliveryRef, t.Step == stepCondemn)
	if err != nil {
		return nil, fmt.Errorf("deliver %s: %w", t.Delivery, err)
	}
	return json.Marshal(answer)
}

// attempt makes the attempt that is due. It gives up a delivery that is condemned, because it has
// crashed the server twice: Rescue would start it again, and the server would crash again.
func (s *Store) attempt(ctx context.Context, ref DeliveryRef, condemned bool) (next, error) {
	d, err := s.GetDelivery(ctx, ref)
	switch {
	case fault.Is(err, fault.NotFound):
		return next{Next: done}, nil // it has expired
	case err != nil:
		return next{}, err
	case d.Status == Pending && condemned:
		return s.note(ctx, d, Webhook{}, outcome{failure: "The server crashed twice while it sent this message.", final: true})
	case d.Status != Pending || s.Now().Before(d.Due):
		return d.next(s.Now()), nil
	}
	w, result, err := s.tryPatiently(ctx, d)
	if err != nil {
		return next{}, err
	}
	// Store the outcome even if the caller has gone: otherwise the message is sent again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
	defer cancel()
	return s.note(ctx, d, w, result)
}

// noteLimit bounds the time for storing the outcome of an attempt.
const noteLimit = 10 * time.Second

// nearby is the longest wait of a workflow. It is the pause of 5 min with its jitter. A workflow
// that waits for hours would take up one of the open executions that an account may have.
const nearby = 6 * time.Minute

// next returns what the machine does with the delivery in its present state. The machine is done
// if the next attempt is far away: Rescue then starts another workflow when the attempt is due.
func (d Delivery) next(now time.Time) next {
	if d.Status == Pending && d.Due.Sub(now) <= nearby {
		return next{wait, clock.Format(d.Due)}
	}
	return next{Next: done}
}

// outcome is the result of an attempt.
type outcome struct {
	// response is the HTTP status of the answer, or 0 if there was no answer.
	response int
	// failure is the reason why the attempt failed, or "" if it succeeded.
	failure string
	// final says that there is no receiver any more.
	final bool
}

// tryPatiently makes an attempt as one of the workspace's streams if the receiver is slow. An
// attempt without a place has failed, so that slow receivers of one workspace do not keep the
// messages of all others from being sent.
func (s *Store) tryPatiently(ctx context.Context, d Delivery) (w Webhook, result outcome, err error) {
	if s.Places == nil {
		return s.try(ctx, d)
	}
	take := func(ctx context.Context) (leave func(), err error) { return s.Places.Hold(ctx, d.Workspace, "", "") }
	err = quota.Patiently(ctx, s.Log, s.Patience, take, func(ctx context.Context) (err error) {
		w, result, err = s.try(ctx, d)
		return err
	})
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind == fault.TooMany {
		return w, outcome{failure: fmt.Sprintf("There was no answer in %v. %s", s.Patience, refused.Message)}, nil
	}
	return w, result, err
}

// try makes an attempt. There is no webhook for a message that was sent to a run's own URL.
func (s *Store) try(ctx context.Context, d Delivery) (w Webhook, result outcome, err error) {
	if d.Message.URL != "" {
		result, err = s.sendOwn(ctx, d)
		return w, result, err
	}
	w, err = s.Get(ctx, Ref{d.Workspace, d.Log})
	switch {
	case fault.Is(err, fault.NotFound):
		return w, outcome{failure: "The webhook was deleted.", final: true}, nil
	case err != nil:
		return w, outcome{}, err
	case !w.Enabled:
		return w, outcome{failure: "The webhook is disabled.", final: true}, nil
	}
	result, err = s.post(ctx, w.URL, delivered{Sent: d.Message, client: s.client, webhook: &w})
	return w, result, err
}

// delivered is a message with everything that its way needs.
type delivered struct {
	Sent

	client *http.Client
	// header has headers of the message, and webhook is the webhook that signs it; both may be
	// nil.
	header  map[string]string
	webhook *Webhook
}

// post sends a message. The error is for an attempt that was not made.
func (s *Store) post(ctx context.Context, url string, d delivered) (outcome, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return outcome{failure: "The address is not a URL.", final: true}, nil //nolint:nilerr // the address is to blame
	}
	now := s.Now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Slipway-Webhooks/1")
	for name, value := range d.header {
		request.Header.Set(name, value)
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, d.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if d.webhook != nil {
		signature, err := s.sign(ctx, *d.webhook, d.Sent, now)
		if err != nil {
			return outcome{}, err
		}
		request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	}
	answer, err := d.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return outcome{}, context.Cause(ctx)
		}
		return outcome{failure: failure(err)}, nil
	}
	// The body is not used. Reading it keeps the sender from failing in the middle of its answer.
	_, _ = io.Copy(io.Discard, answer.Body)
	if err := answer.Body.Close(); err != nil {
		s.Log.DebugContext(ctx, "close answer of a webhook", "error", err)
	}
	return judge(answer.StatusCode), nil
}

func judge(status int) outcome {
	switch {
	case status >= 200 && status <= 299:
		return outcome{response: status}
	case status >= 300 && status <= 399:
		return outcome{response: status, failure: fmt.Sprintf("The answer has status %d. Redirects are not followed.", status)}
	default:
		return outcome{response: status, failure: fmt.Sprintf("The answer has status %d.", status), final: status == http.StatusGone}
	}
}

// failure returns the reason why there was no answer. The text never contains the address, because
// its query may hold a secret.
func failure(err error) string {
	timeout, isNet := errors.AsType[net.Error](err)
	_, isName := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, outbound.ErrAddress):
		return "The address is not a public one."
	case isNet && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "There was no answer in time."
	case isName:
		return "The name of the address cannot be resolved."
	case strings.Contains(err.Error(), "certificate"):
		return "The certificate of the address is not valid."
	default:
		return "The address cannot be reached."
	}
}

// sign returns the webhook-signature header, with a signature for each secret that signs.
func (s *Store) sign(ctx context.Context, w Webhook, message Sent, now time.Time) (string, error) {
	var signatures []string
	for _, kept := range w.Secrets {
		if !kept.Until.IsZero() && !now.Before(kept.Until) {
			continue
		}
		text, err := s.Sealer.Open(ctx, w.bound(), kept.Sealed)
		if err != nil {
			return "", fmt.Errorf("open secret of webhook %s: %w", w.Webhook, err)
		}
		key, err := standardwebhooks.NewWebhook(string(text))
		if err != nil {
			// The library's error could hold a part of it.
			return "", errors.New("the secret is not in base64")
		}
		signature, err := key.Sign(message.ID, now, message.Body)
		if err != nil {
			return "", fmt.Errorf("sign: %w", err)
		}
		signatures = append(signatures, signature)
	}
	return strings.Join(signatures, " "), nil
}

// note stores the outcome of an attempt in the delivery, and in its webhook, if there is one, if it
// changes the webhook's state.
func (s *Store) note(ctx context.Context, d Delivery, w Webhook, result outcome) (next, error) {
	now := s.Now()
	after := d
	after.Attempts, after.Response, after.Failure = d.Attempts+1, result.response, result.failure
	due, again := s.later(now, after.Attempts)
	switch {
	case result.failure == "":
		after.Status = Succeeded
	case result.final || !again:
		after.Status = Failed
	default:
		after.Due = due
	}
	called, stale := w.URL, false
	outcome, err := record.DecideValue(ctx, s.Table, func(ctx context.Context) (_ next, o record.Outbox, err error) {
		if stale && w.Webhook != "" {
			if w, err = s.Get(ctx, w.Ref); err != nil && !fault.Is(err, fault.NotFound) {
				return next{}, o, err
			}
		}
		stale = true
		o.AddOr(d.change(now, after), record.Always(errSent))
		if w.URL == called { // another address has not shown anything yet
			o.Add(w.learn(ctx, now, result)...)
		}
		return after.next(now), o, nil
	})
	if errors.Is(err, errSent) {
		present, err := s.GetDelivery(ctx, d.DeliveryRef)
		return present.next(now), err
	}
	return outcome, err
}

// errSent means that another worker has also made the attempt and has stored its outcome.
var errSent = errors.New("the attempt was made by another worker")

// learn returns the writes that record what an attempt shows about the webhook.
func (w Webhook) learn(ctx context.Context, now time.Time, result outcome) []table.Write {
	if !w.Enabled {
		return nil
	}
	set := table.Attrs{}
	switch {
	case result.failure == "" && !w.Failing.IsZero():
		set[attrFailing] = ""
	case result.response == http.StatusGone:
		set[attrEnabled], set[attrReason] = false, ReasonGone
	case result.failure != "" && w.Failing.IsZero():
		set[attrFailing] = clock.Format(now)
	case result.failure != "" && now.Sub(w.Failing) >= disableAfter:
		set[attrEnabled], set[attrReason] = false, ReasonFailing
	default:
		return nil
	}
	writes := []table.Write{w.change(now, set)}
	if reason, disabled := set[attrReason].(string); disabled {
		writes = append(writes, audit.New(ctx, audit.UpdateWebhook, w.Webhook, "disabled by the server: "+reason).Write(w.Workspace, now))
	}
	return writes
}
