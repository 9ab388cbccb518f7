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

// sealedAttrs returns the encrypted attributes of an item.
func sealedAttrs(item *table.Item, l layout) (names []string) {
	for _, name := range l.attrs {
		if strings.HasPrefix(item.Text(name), attrMark) {
			names = append(names, name)
		}
	}
	return names
}

// open returns items with their contents decrypted. Items are read only, so it returns copies of
// the items that are encrypted.
func (t *Table) open(ctx context.Context, items ...*table.Item) ([]*table.Item, error) {
	if table.IsWithoutContents(ctx) {
		return withoutContents(items), nil
	}
	var opened []*table.Item // nil as long as there is no encrypted item
	questions := map[keys.DeploymentParts]*openings{}
	for i, item := range items {
		if item == nil || !isSealedItem(item) {
			continue
		}
		if opened == nil {
			opened = append(opened, items...)
		}
		copied := *item
		opened[i] = &copied
		if err := openInto(questions, &copied); err != nil {
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
func withoutContents(items []*table.Item) []*table.Item {
	sized := slices.Clone(items)
	for i, item := range items {
		if item == nil || !isSealed(item.Body) {
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

func openInto(questions map[keys.DeploymentParts]*openings, item *table.Item) error {
	workspace, l, err := layoutOfStored(item.Key)
	if err != nil {
		return err
	}
	of := func(h header) *openings {
		of := keys.DeploymentParts{Workspace: workspace, Deployment: h.Deployment}
		if questions[of] == nil {
			questions[of] = &openings{}
		}
		return questions[of]
	}
	if isSealed(item.Body) {
		h, rest, err := split(item.Body)
		if err != nil {
			return err
		}
		of(h).openBody(item, l, h, rest)
	}
	for _, name := range sealedAttrs(item, l) {
		body, err := decodeAttr(item.Text(name))
		if err != nil {
			return err
		}
		h, rest, err := split(body)
		if err != nil {
			return err
		}
		of(h).openAttr(item, name, h, rest)
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
