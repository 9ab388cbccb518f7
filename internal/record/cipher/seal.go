package cipher

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// seal returns writes with their contents encrypted.
func (t *Table) seal(ctx context.Context, writes []table.Write) ([]table.Write, error) {
	var sealed []table.Write // nil as long as no write has contents to encrypt
	questions := map[keys.DeploymentParts]*sealings{}
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
		if questions[of] == nil {
			questions[of] = &sealings{deployment: of.Deployment}
		}
		if err := questions[of].add(&sealed[i], l, own.of(write.Target()), body, attrs); err != nil {
			return nil, err
		}
	}
	for of, s := range questions {
		if err := t.sealAll(ctx, of, s); err != nil {
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

// sealings are the writes of a deployment that one question seals.
type sealings struct {
	question

	deployment string
	// context is the context of all values, nil if each has its own.
	context json.RawMessage
	fill    []func()
	blank   []func()
}

func (s *sealings) add(write *table.Write, l layout, own json.RawMessage, body []byte, attrs table.Attrs) error {
	contextOf := func(own json.RawMessage) json.RawMessage {
		if s.context != nil {
			return s.context
		}
		return own
	}
	bodyOf := func() []byte { return nil }
	if body != nil {
		var err error
		if bodyOf, err = s.encrypt(l, s.deployment, own, body, contextOf); err != nil {
			return err
		}
	}
	attrsOf := map[string]func() []byte{}
	for name, text := range attrs {
		text, _ := text.(string)
		done, err := s.encrypt(layout{model: "run", rest: name}, s.deployment, own, []byte(text), contextOf)
		if err != nil {
			return err
		}
		attrsOf[name] = done
	}
	s.fill = append(s.fill, func() {
		changed := table.Attrs{}
		for name, done := range attrsOf {
			changed[name] = encodeAttr(done())
		}
		replace(write, bodyOf(), changed)
	})
	s.blank = append(s.blank, func() {
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

func (t *Table) sealAll(ctx context.Context, of keys.DeploymentParts, s *sealings) error {
	request := requestOf(ctx)
	context, err := t.askInParts(ctx, of, graph.OperationEncrypt, graph.Encryption{Context: request.Context, User: request.User}, s.question)
	if errors.Is(err, ErrGone) {
		for _, blank := range s.blank {
			blank()
		}
		return nil
	}
	if err != nil {
		return err
	}
	s.context = context
	for _, fill := range s.fill {
		fill()
	}
	return nil
}

// maxContext is how many bytes a context may have, because it is stored beside each value.
const maxContext = 16 << 10

// partBytes is how many bytes one question may have, unless it has a single value.
const partBytes = 8 << 20

// askInParts asks a question, and gives the answers to its parts. All parts have the context of the
// first answer. It returns this context, nil if each value has its own.
func (t *Table) askInParts(ctx context.Context, of keys.DeploymentParts, operation graph.Operation, asked graph.Encryption, q question) (context json.RawMessage, err error) {
	for from := 0; from < len(q.values); {
		to, size := from, 0
		for to < len(q.values) && (to == from || size+len(q.values[to].Data) <= partBytes) {
			size += len(q.values[to].Data)
			to++
		}
		asked.Values = q.values[from:to]
		ciphered, err := t.asked(ctx, of, operation, asked)
		if err != nil {
			return nil, err
		}
		for i, value := range ciphered.Values {
			if err := q.take[from+i](value); err != nil {
				return nil, err
			}
		}
		if len(ciphered.Context) > maxContext {
			return nil, failed("The repository's own encryption has made a context that is larger than 16 KiB.")
		}
		if len(ciphered.Context) > 0 && string(ciphered.Context) != "null" {
			// A repository that makes the context from the user may make another one each time.
			context = ciphered.Context
			asked.Context, asked.User = context, nil
		}
		from = to
	}
	return context, nil
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
