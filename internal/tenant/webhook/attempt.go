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
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// next is the answer of a step: what the machine does.
type next struct {
	Next string `json:"next"`
	// Due is until when it waits.
	Due string `json:"due,omitempty"`
}

const (
	wait = "Wait"
	done = "Done"
)

// Task is the workflow.TaskFunc of the machine: it makes the attempt that is due.
func (s *Store) Task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var t task
	if err := json.Unmarshal(input, &t); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	answer, err := s.attempt(ctx, DeliveryRef(t))
	if err != nil {
		return nil, fmt.Errorf("deliver %s: %w", t.Delivery, err)
	}
	return json.Marshal(answer)
}

func (s *Store) attempt(ctx context.Context, ref DeliveryRef) (next, error) {
	d, err := s.GetDelivery(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return next{Next: done}, nil // it has expired
	}
	if err != nil {
		return next{}, err
	}
	if d.Status != Pending || s.now().Before(d.Due) {
		return d.next(), nil
	}
	w, came, err := s.send(ctx, d)
	if err != nil {
		return next{}, err
	}
	// What was sent must not be sent again because its caller has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
	defer cancel()
	return s.note(ctx, d, w, came)
}

// noteLimit is how long noting what came of an attempt may take.
const noteLimit = 10 * time.Second

// next is what the machine does with the delivery as it is.
func (d Delivery) next() next {
	if d.Status == Pending {
		return next{wait, clock.Format(d.Due)}
	}
	return next{Next: done}
}

// outcome is what came of an attempt.
type outcome struct {
	// response is the status of the answer, 0 when there was none.
	response int
	// failure is why it is no success, "" when it is one.
	failure string
	// final says that there is nobody to send to.
	final bool
}

// send makes an attempt. The webhook is nil when the message is none's.
func (s *Store) send(ctx context.Context, d Delivery) (*Webhook, outcome, error) {
	if d.Message.URL != "" {
		came, err := s.post(ctx, d, d.Message.URL, nil)
		return nil, came, err
	}
	w, err := s.Get(ctx, Ref{d.Workspace, d.Log})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, outcome{failure: "The webhook was deleted.", final: true}, nil
	case err != nil:
		return nil, outcome{}, err
	case !w.Enabled:
		return &w, outcome{failure: "The webhook is disabled.", final: true}, nil
	}
	came, err := s.post(ctx, d, w.URL, &w)
	return &w, came, err
}

// post sends the message, signed if it is a webhook's. The error is for an attempt that was not made.
func (s *Store) post(ctx context.Context, d Delivery, url string, w *Webhook) (outcome, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Message.Body))
	if err != nil {
		return outcome{failure: "The address is not a URL.", final: true}, nil //nolint:nilerr // the address is to blame
	}
	now := s.now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Slipway-Webhooks/1")
	request.Header.Set(standardwebhooks.HeaderWebhookID, d.Message.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if w != nil {
		signature, err := s.sign(ctx, *w, d.Message, now)
		if err != nil {
			return outcome{}, err
		}
		request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return outcome{}, context.Cause(ctx)
		}
		return outcome{failure: failure(err)}, nil
	}
	// Nothing of the body is of interest; what there is of it is read so that its sender is not cut off.
	_, _ = io.Copy(io.Discard, answer.Body)
	if err := answer.Body.Close(); err != nil {
		s.log.DebugContext(ctx, "close answer of a webhook", "error", err)
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

// failure says why there was no answer, in words that do not hold the address: its query may be a secret.
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

// sign returns the value of webhook-signature: one for each secret that signs.
func (s *Store) sign(ctx context.Context, w Webhook, message Sent, now time.Time) (string, error) {
	var signatures []string
	for _, kept := range w.Secrets {
		if !kept.Until.IsZero() && !now.Before(kept.Until) {
			continue
		}
		text, err := s.sealer.Open(ctx, w.bound(), kept.Sealed)
		if err != nil {
			return "", fmt.Errorf("open secret of webhook %s: %w", w.Webhook, err)
		}
		key, err := standardwebhooks.NewWebhook(string(text))
		if err != nil {
			return "", errors.New("the secret is not in base64") // the library's own words could hold a part of it
		}
		signature, err := key.Sign(message.ID, now, message.Body)
		if err != nil {
			return "", fmt.Errorf("sign: %w", err)
		}
		signatures = append(signatures, signature)
	}
	return strings.Join(signatures, " "), nil
}

// note writes what came of an attempt: on the delivery, and on its webhook where that is news.
func (s *Store) note(ctx context.Context, d Delivery, w *Webhook, came outcome) (next, error) {
	now := s.now()
	after := d
	after.Attempts, after.Response, after.Failure = d.Attempts+1, came.response, came.failure
	due, again := s.later(now, after.Attempts)
	switch {
	case came.failure == "":
		after.Status = Succeeded
	case came.final || !again:
		after.Status = Failed
	default:
		after.Due = due
	}
	for range contention {
		writes := []table.Write{d.change(now, after)}
		if w != nil {
			writes = append(writes, w.learn(ctx, now, came)...)
		}
		err := s.table.Transact(ctx, writes...)
		failed, changed := errors.AsType[*table.ConditionFailed](err)
		switch {
		case err == nil:
			return after.next(), nil
		case changed && failed.Write == 0: // somebody else has sent it too
			now, err := s.GetDelivery(ctx, d.DeliveryRef)
			return now.next(), err
		case changed:
			if w, err = s.again(ctx, w.Ref); err != nil {
				return next{}, err
			}
		default:
			return next{}, fmt.Errorf("write delivery: %w", err)
		}
	}
	return next{}, errTooOften
}

// again reads a webhook that was changed, nil if it is gone.
func (s *Store) again(ctx context.Context, ref Ref) (*Webhook, error) {
	w, err := s.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return &w, err
}

// learn returns the writes of what an attempt tells about the webhook.
func (w *Webhook) learn(ctx context.Context, now time.Time, came outcome) []table.Write {
	if !w.Enabled {
		return nil
	}
	set := table.Attrs{}
	switch {
	case came.failure == "" && !w.Failing.IsZero():
		set[attrFailing] = ""
	case came.response == http.StatusGone:
		set[attrEnabled], set[attrReason] = false, ReasonGone
	case came.failure != "" && w.Failing.IsZero():
		set[attrFailing] = clock.Format(now)
	case came.failure != "" && now.Sub(w.Failing) >= disableAfter:
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
