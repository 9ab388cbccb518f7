package cipher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// open returns items with their contents decrypted. Items are read only, so it returns copies of
// the items that are encrypted.
func (t *Table) open(ctx context.Context, items ...*table.Item) ([]*table.Item, error) {
	if table.IsWithoutContents(ctx) {
		return t.withoutContents(items), nil
	}
	var opened []*table.Item // nil as long as there is no encrypted item
	questions := map[keys.DeploymentParts]*openings{}
	for i, item := range items {
		s, sealed := t.sealed(item)
		if !sealed {
			continue
		}
		if opened == nil {
			opened = append(opened, items...)
		}
		copied := *item
		opened[i], s.Item = &copied, &copied
		if err := openInto(questions, s); err != nil {
			return nil, fmt.Errorf("item %v: %w", item.Key, err)
		}
	}
	for of, o := range questions {
		if err := t.answer(ctx, of, o); err != nil {
			return nil, err
		}
	}
	if opened == nil {
		return items, nil
	}
	return opened, nil
}

// withoutContents returns items whose bodies have the sizes that they had before their encryption:
// quotas have counted these sizes. A damaged body keeps its own size, so that it can be erased.
func (t *Table) withoutContents(items []*table.Item) []*table.Item {
	sized := slices.Clone(items)
	for i, item := range items {
		if _, sealed := t.sealed(item); !sealed || !isSealed(item.Body) {
			continue
		}
		h, _, err := split(item.Body)
		if err != nil {
			continue
		}
		copied := *item
		if size := h.sizeOf(item.Body); size <= len(item.Body) {
			copied.Body = item.Body[:size]
		} else {
			copied.Body = blank(size)
		}
		sized[i] = &copied
	}
	return sized
}

// openings are the items of a deployment that one question opens.
type openings struct {
	question
	// fill puts the decrypted parts into the items, blank puts empty parts into them.
	fill  []func() error
	blank []func()
}

func openInto(questions map[keys.DeploymentParts]*openings, s stored) error {
	ask := func(h header) *openings {
		of := s.deployment(h)
		if questions[of] == nil {
			questions[of] = &openings{}
		}
		return questions[of]
	}
	if isSealed(s.Body) {
		h, rest, err := split(s.Body)
		if err != nil {
			return err
		}
		ask(h).openBody(s.Item, s.l, h, rest)
	}
	for _, name := range s.sealedAttrs() {
		body, err := decodeAttr(s.Text(name))
		if err != nil {
			return err
		}
		h, rest, err := split(body)
		if err != nil {
			return err
		}
		ask(h).openAttr(s.Item, name, h, rest)
	}
	return nil
}

func (o *openings) openBody(item *table.Item, l layout, h header, rest []byte) {
	done := o.decrypt(l, h, rest)
	size := h.sizeOf(item.Body)
	o.fill = append(o.fill, func() (err error) {
		item.Body, err = done()
		return err
	})
	o.blank = append(o.blank, func() { item.Body = blank(size) })
}

// blank is an empty JSON object that takes as many bytes as a body.
func blank(size int) []byte { return []byte("{" + strings.Repeat(" ", max(size-2, 0)) + "}") }

func (o *openings) openAttr(item *table.Item, name string, h header, rest []byte) {
	done := o.decrypt(layout{model: "run", rest: name}, h, rest)
	set := func(text string) { item.Attrs = withAttrs(item.Attrs, table.Attrs{name: text}) }
	o.fill = append(o.fill, func() error {
		text, err := done()
		set(string(text))
		return err
	})
	o.blank = append(o.blank, func() { set("") })
}

func (t *Table) answer(ctx context.Context, of keys.DeploymentParts, o *openings) error {
	_, err := t.askInParts(ctx, of, graph.OperationDecrypt, graph.Encryption{}, o.question)
	if errors.Is(err, ErrGone) {
		for _, blank := range o.blank {
			blank()
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, fill := range o.fill {
		if err := fill(); err != nil {
			return failed(fmt.Sprintf("The repository's own encryption has failed: %v.", err))
		}
	}
	return nil
}
