package cipher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// seal returns writes with their contents encrypted.
func (t *Table) seal(ctx context.Context, writes []table.Write) ([]table.Write, error) {
	var sealed []table.Write // nil as long as no write has contents to encrypt
	questions := map[keys.DeploymentParts]*question{}
	var own *contexts
	for i, write := range writes {
		body, attrs := contentsOf(write)
		if body == nil && len(attrs) == 0 {
			continue // also a write that is nil, which the table below refuses
		}
		of, l, marked := t.deploymentOf(write.Target(), body, attrs)
		if attrs = withContent(attrs, l); !marked || (body == nil && len(attrs) == 0) {
			continue
		}
		if sealed == nil {
			sealed = slices.Clone(writes)
			var err error
			if own, err = t.contexts(ctx, writes); err != nil {
				return nil, err
			}
		}
		if err := questionTo(questions, of).seal(&sealed[i], l, of.Deployment, own.of(write.Target()), body, attrs); err != nil {
			return nil, err
		}
	}
	request := requestOf(ctx)
	for of, q := range questions {
		if err := t.resolve(ctx, of, graph.OperationEncrypt, graph.Encryption{Context: request.Context, User: request.User}, q); err != nil {
			return nil, err
		}
	}
	if sealed == nil {
		return writes, nil
	}
	return sealed, nil
}

func contentsOf(write table.Write) (body []byte, attrs table.Attrs) {
	switch w := write.(type) {
	case table.Put:
		return w.Item.Body, w.Item.Attrs
	case table.Update:
		return w.Body, w.Set
	default:
		return nil, nil
	}
}

// withContent returns the attributes that are to be encrypted.
func withContent(attrs table.Attrs, l layout) table.Attrs {
	contents := table.Attrs{}
	for _, name := range l.attrs {
		if text, _ := attrs[name].(string); text != "" {
			contents[name] = text
		}
	}
	return contents
}

// replace puts other contents into a write.
func replace(write *table.Write, body []byte, attrs table.Attrs) {
	switch w := (*write).(type) {
	case table.Put:
		w.Item.Body, w.Item.Attrs = body, withAttrs(w.Item.Attrs, attrs)
		*write = w
	case table.Update:
		w.Body, w.Set = body, withAttrs(w.Set, attrs)
		*write = w
	}
}

// seal asks for the encryption of the body and the attributes of a write.
func (q *question) seal(write *table.Write, l layout, deployment string, own json.RawMessage, body []byte, attrs table.Attrs) error {
	bodyOf := func() []byte { return nil }
	if body != nil {
		var err error
		if bodyOf, err = q.encrypt(l, deployment, own, body); err != nil {
			return err
		}
	}
	attrsOf := map[string]func() []byte{}
	for name, text := range attrs {
		text, _ := text.(string)
		done, err := q.encrypt(layout{model: "run", rest: name}, deployment, own, []byte(text))
		if err != nil {
			return err
		}
		attrsOf[name] = done
	}
	q.then(func() error {
		changed := table.Attrs{}
		for name, done := range attrsOf {
			changed[name] = encodeAttr(done())
		}
		replace(write, bodyOf(), changed)
		return nil
	}, func() {
		changed := table.Attrs{}
		for name := range attrsOf {
			changed[name] = ""
		}
		if body != nil {
			body = blank(len(body))
		}
		replace(write, body, changed)
	})
	return nil
}

// resolve asks a question and puts its answers in their places. Nothing is left of contents that
// are gone.
func (t *Table) resolve(ctx context.Context, of keys.DeploymentParts, operation graph.Operation, request graph.Encryption, q *question) error {
	err := t.askInParts(ctx, of, operation, request, q)
	if errors.Is(err, ErrGone) {
		for _, blank := range q.blank {
			blank()
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, fill := range q.fill {
		if err := fill(); err != nil {
			return failed(fmt.Sprintf("The repository's own encryption has failed: %v.", err))
		}
	}
	return nil
}

// maxContext is how many bytes a context may have, because it is stored beside each value.
const maxContext = 16 << 10

// partBytes is how many bytes one question may have, unless it has a single value.
const partBytes = 8 << 20

// askInParts asks a question in parts. All parts have the context of the first answer.
func (t *Table) askInParts(ctx context.Context, of keys.DeploymentParts, operation graph.Operation, request graph.Encryption, q *question) error {
	for left := q.values; len(left) > 0; left = left[len(request.Values):] {
		size := 0
		last := slices.IndexFunc(left, func(value graph.EncryptedValue) bool {
			size += len(value.Data)
			return size > partBytes
		})
		request.Values = left
		if last >= 0 {
			request.Values = left[:max(last, 1)]
		}
		ciphered, err := t.askNow(ctx, of, operation, request)
		if err != nil {
			return err
		}
		if len(ciphered.Context) > maxContext {
			return failed("The repository's own encryption has made a context that is larger than 16 KiB.")
		}
		q.made = append(q.made, ciphered.Values...)
		if len(ciphered.Context) > 0 && string(ciphered.Context) != "null" {
			// A repository that makes the context from the user may make another one each time.
			q.context, request.Context, request.User = ciphered.Context, ciphered.Context, nil
		}
	}
	return nil
}

// contexts are the contexts of items that are stored already.
type contexts struct {
	byKey map[table.Key]json.RawMessage
	first json.RawMessage
}

// of returns the context for an item, if the request has no context.
func (c *contexts) of(key table.Key) json.RawMessage {
	if own, ok := c.byKey[key]; ok {
		return own
	}
	return c.first
}

// contexts reads the contexts of the items that writes concern: runs first, then all others, then
// the threads, then the items that Like names.
func (t *Table) contexts(ctx context.Context, writes []table.Write) (*contexts, error) {
	var runs, others, threads []table.Key
	for _, write := range writes {
		if write == nil {
			continue
		}
		key := write.Target()
		if _, part, ok := keys.ParsePart(key); !ok {
			continue
		} else if thread, err := keys.ThreadOf(key); err == nil && part == keys.OfThread {
			threads = append(threads, thread)
		}
		if keys.IsRun(key) {
			runs = append(runs, key)
		} else {
			others = append(others, key)
		}
	}
	looked := map[table.Key]bool{}
	all := slices.DeleteFunc(slices.Concat(runs, others, threads, likeOf(ctx)), func(key table.Key) bool {
		again := looked[key]
		looked[key] = true
		return again
	})
	known := &contexts{byKey: map[table.Key]json.RawMessage{}}
	for some := range slices.Chunk(all, table.MaxWrites) {
		items, err := t.Table.GetBatch(ctx, some...)
		if err != nil {
			return nil, err //nolint:wrapcheck // the table's own
		}
		for i, item := range items {
			if _, sealed := t.sealed(item); !sealed || !isSealed(item.Body) {
				continue
			}
			h, _, err := split(item.Body)
			if err != nil {
				return nil, err
			}
			if h.Context != nil {
				known.byKey[some[i]] = h.Context
				if known.first == nil {
					known.first = h.Context
				}
			}
		}
	}
	return known, nil
}
