package cipher

import (
	"context"
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
	questions := map[keys.DeploymentParts]*question{}
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
	for of, q := range questions {
		if err := t.resolve(ctx, of, graph.OperationDecrypt, graph.Encryption{}, q); err != nil {
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

// openInto adds the encrypted parts of an item to the questions of their deployments.
func openInto(questions map[keys.DeploymentParts]*question, s stored) error {
	if isSealed(s.Body) {
		h, rest, err := split(s.Body)
		if err != nil {
			return err
		}
		q, size := questionTo(questions, s.deployment(h)), h.sizeOf(s.Body)
		done := q.decrypt(s.l, h, rest)
		q.then(func() (err error) {
			s.Body, err = done()
			return err
		}, func() { s.Body = blank(size) })
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
		q := questionTo(questions, s.deployment(h))
		done := q.decrypt(layout{model: "run", rest: name}, h, rest)
		set := func(text []byte) { s.Attrs = withAttrs(s.Attrs, table.Attrs{name: string(text)}) }
		q.then(func() error {
			text, err := done()
			set(text)
			return err
		}, func() { set(nil) })
	}
	return nil
}

// blank is an empty JSON object that takes as many bytes as a body.
func blank(size int) []byte { return []byte("{" + strings.Repeat(" ", max(size-2, 0)) + "}") }
