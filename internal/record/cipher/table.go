package cipher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Ask asks the encryption of a deployment's repository. The error is ErrGone if the data of the
// deployment are being erased, or are gone.
type Ask func(ctx context.Context, workspace, deployment string, operation graph.Operation, asked graph.Encryption) (graph.Ciphered, error)

// ErrGone says that no contents of a deployment are left.
var ErrGone = errors.New("the deployment's contents are gone")

// Table is a table that encrypts the contents of marked deployments.
type Table struct {
	table.Table

	ask Ask
	now clock.Clock
	// any says that a deployment is marked. Without one, every call goes to the table below.
	any atomic.Bool

	// timers bound how long timers wait for deployments.
	timers *patience

	mu     sync.Mutex
	marked map[keys.DeploymentParts]bool
	// marking counts the transactions under way that write the note of a deployment.
	marking map[keys.DeploymentParts]int
}

// Open reads the notes of a table, and returns the table that encrypts.
func Open(ctx context.Context, below table.Table, now clock.Clock, ask Ask) (*Table, error) {
	t := &Table{
		Table: below, ask: ask, now: now, timers: newPatience(now), marked: map[keys.DeploymentParts]bool{}, marking: map[keys.DeploymentParts]int{},
	}
	notes, err := table.AllItems(ctx, below, keys.AllEncrypted())
	if err != nil {
		return nil, fmt.Errorf("read which deployments are encrypted: %w", err)
	}
	for _, note := range notes {
		if of, ok := keys.ParseEncrypted(note.Key); ok {
			t.marked[of] = true
			t.any.Store(true)
		}
	}
	return t, nil
}

const kind = "encrypted"

// Mark is the write that marks a deployment. It belongs into the transaction from which on the
// deployment's agent can encrypt.
func Mark(workspace, deployment string, now time.Time) table.Write {
	return table.Put{Item: record.Item(keys.Encrypted(workspace, deployment), kind, now, nil, nil)}
}

// remembered is how long the note of an erased deployment is kept: messages to webhooks about its
// runs are kept so long, and are read as empty meanwhile.
const remembered = 31 * 24 * time.Hour

// Erase lets the note of a deployment expire.
func (t *Table) Erase(ctx context.Context, workspace, deployment string) error {
	of := keys.DeploymentParts{Workspace: workspace, Deployment: deployment}
	if !t.isMarked(of) {
		return nil
	}
	now := t.now()
	note := record.Item(keys.Encrypted(workspace, deployment), kind, now, nil, nil)
	note.Expires = now.Add(remembered)
	if err := t.Table.Transact(ctx, table.Put{Item: note}); err != nil {
		return fmt.Errorf("forget that deployment %s is encrypted: %w", deployment, err)
	}
	return nil
}

func (t *Table) isMarked(of keys.DeploymentParts) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.marked[of] || t.marking[of] > 0
}

// learn marks the deployments whose notes a transaction is about to write. If the transaction was
// refused, learned takes the marks back: the agents that serve these deployments may have no
// encryption. It does not if another transaction has written the note, or is about to.
func (t *Table) learn(writes []table.Write) (learned func(refused bool)) {
	var noted []keys.DeploymentParts
	for _, write := range writes {
		if put, isPut := write.(table.Put); isPut {
			if of, ok := keys.ParseEncrypted(put.Item.Key); ok {
				noted = append(noted, of)
			}
		}
	}
	if len(noted) == 0 {
		return func(bool) {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range noted {
		t.marking[of]++
	}
	t.any.Store(true)
	return func(refused bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, of := range noted {
			t.marked[of] = t.marked[of] || !refused
			if t.marking[of]--; t.marking[of] == 0 {
				delete(t.marking, of)
			}
		}
	}
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := t.Table.Get(ctx, key)
	if err != nil || !t.any.Load() {
		return item, err //nolint:wrapcheck // the table's own
	}
	opened, err := t.open(ctx, item)
	if err != nil {
		return nil, err
	}
	return opened[0], nil
}

// GetBatch implements table.Table.
func (t *Table) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	items, err := t.Table.GetBatch(ctx, keys...)
	if err != nil || !t.any.Load() {
		return items, err //nolint:wrapcheck // the table's own
	}
	return t.open(ctx, items...)
}

// Query implements table.Table.
func (t *Table) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := t.Table.Query(ctx, query)
	if err != nil || !t.any.Load() {
		return page, err //nolint:wrapcheck // the table's own
	}
	page.Items, err = t.open(ctx, page.Items...)
	return page, err
}

// Transact implements table.Table.
func (t *Table) Transact(ctx context.Context, writes ...table.Write) error {
	return t.write(ctx, t.Table.Transact, writes)
}

// InOrder implements table.Table.
func (t *Table) InOrder(ctx context.Context, writes ...table.Write) error {
	t.learn(writes)(false) // a refusal leaves open whether a note was written
	return t.write(ctx, t.Table.InOrder, writes)
}

func (t *Table) write(ctx context.Context, apply func(context.Context, ...table.Write) error, writes []table.Write) error {
	learned := t.learn(writes)
	if !t.any.Load() {
		return apply(ctx, writes...)
	}
	sealed, err := t.seal(ctx, writes)
	if err != nil {
		learned(true)
		return err
	}
	err = apply(ctx, sealed...)
	failed, refused := errors.AsType[*table.ConditionFailed](err)
	learned(refused)
	if refused && failed.Item != nil {
		opened, err := t.open(ctx, failed.Item)
		if err != nil {
			return err
		}
		return &table.ConditionFailed{Write: failed.Write, Item: opened[0]}
	}
	return err
}

// Watch implements table.Table. A watcher's item that is encrypted is not known to its reader.
func (t *Table) Watch(key table.Key) table.Watcher { return watcher{t.Table.Watch(key), t} }

type watcher struct {
	table.Watcher

	of *Table
}

// Item implements table.Watcher.
func (w watcher) Item() *table.Item {
	item := w.Watcher.Item()
	if _, sealed := w.of.sealed(item); sealed {
		return nil
	}
	return item
}

// layoutOfKey returns the layout of an item that may have contents, with its workspace, and with
// its deployment if the key names it.
func layoutOfKey(key table.Key) (of keys.DeploymentParts, l layout, ok bool) {
	if of, part, ok := keys.ParsePart(key); ok {
		return of, layoutOf(part, key), true
	}
	if workspace, ok := keys.ParseAnswer(key); ok {
		return keys.DeploymentParts{Workspace: workspace}, ofAnswer, true
	}
	parts, err := keys.ParseWebhookDelivery(key)
	return keys.DeploymentParts{Workspace: parts.Workspace}, ofMessage, err == nil
}

// deploymentOf returns the marked deployment whose contents a write of a body and of attributes
// stores.
func (t *Table) deploymentOf(key table.Key, body []byte, attrs table.Attrs) (of keys.DeploymentParts, l layout, marked bool) {
	of, l, ok := layoutOfKey(key)
	switch {
	case !ok || l.plain:
		return of, l, false
	case l.rest == ofMessage.rest:
		var about struct {
			Deployment string `json:"deployment"`
		}
		if json.Unmarshal(body, &about) == nil {
			of.Deployment = about.Deployment
		}
	case l.rest == ofAnswer.rest:
		of.Deployment, _ = attrs[record.Deployment].(string)
	}
	return of, l, t.isMarked(of)
}

// stored is a stored item of which a part may be encrypted.
type stored struct {
	*table.Item

	// of has no deployment if only the header of the encrypted part names it.
	of keys.DeploymentParts
	l  layout
}

// sealed returns an item of which a part is encrypted. An agent may store any bytes, also some that
// look encrypted, so only items of marked deployments count.
func (t *Table) sealed(item *table.Item) (s stored, ok bool) {
	if s.Item = item; item == nil {
		return s, false
	}
	s.of, s.l, ok = layoutOfKey(item.Key)
	hasSealed := isSealed(s.Body) || len(s.sealedAttrs()) > 0
	return s, ok && hasSealed && (s.of.Deployment == "" || t.isMarked(s.of))
}

// sealedAttrs returns the encrypted attributes of an item.
func (s stored) sealedAttrs() (names []string) {
	for _, name := range s.l.attrs {
		if strings.HasPrefix(s.Text(name), attrMark) {
			names = append(names, name)
		}
	}
	return names
}

// deployment returns the deployment that has encrypted a part with a header.
func (s stored) deployment(h header) keys.DeploymentParts {
	if s.of.Deployment == "" {
		return keys.DeploymentParts{Workspace: s.of.Workspace, Deployment: h.Deployment}
	}
	return s.of
}

// withAttrs returns attributes with others in their place.
func withAttrs(attrs table.Attrs, changed table.Attrs) table.Attrs {
	if len(changed) == 0 {
		return attrs
	}
	attrs = maps.Clone(attrs)
	maps.Copy(attrs, changed)
	return attrs
}
