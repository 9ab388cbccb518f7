package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Store reads and writes items.
type Store struct {
	table table.Table
	now   clock.Clock
	pool  *quota.Pool
	held  *vectorCache // nil if no vectors are held
	// compared is how many bytes of vectors a query is compared with, at most; 0 for any number.
	compared int
}

// NewStore returns a store over a table. It limits how many bytes a workspace may store.
func NewStore(t table.Table, now clock.Clock, limits quota.Limits, log *slog.Logger) *Store {
	return &Store{table: t, now: now, pool: quota.NewPool(t, now, limits, log)}
}

// Hold makes the store hold vectors in memory, up to a number of bytes, and about as many more
// while it reads the vectors of a namespace. It must be called before any other method, and
// only in a process that alone writes the table, through this store.
func (s *Store) Hold(room int) *Store {
	s.held = newVectorCache(room)
	return s
}

// Compare limits how many bytes of vectors a search compares a query with. It must be called
// before any other method.
func (s *Store) Compare(most int) *Store {
	s.compared = most
	return s
}

// Room refuses a value that is about to be put if the workspace's stored bytes have reached the
// limit. A caller whose vectors cost something asks before it makes them.
func (s *Store) Room(ctx context.Context, owner Owner, value json.RawMessage) error {
	return s.pool.Room(ctx, owner.Workspace, quota.Size(&table.Item{Body: value}))
}

// Put stores a value under a key, with its vectors, and replaces the existing value and its
// vectors. It keeps the time at which the item was created. A ttl of 0 is for ever.
func (s *Store) Put(ctx context.Context, owner Owner, namespace []string, key string, value json.RawMessage, ttl time.Duration, vectors Vectors) error {
	if err := CheckPut(owner, namespace, key); err != nil {
		return err
	}
	now := s.now()
	next := Item{Namespace: namespace, Key: key, Value: value, TTL: ttl, Created: now, Updated: now, space: vectors.space}
	size := vectors.size() + quota.Size(&table.Item{Body: value})
	if err := s.pool.Room(ctx, owner.Workspace, size); err != nil {
		return err
	}
	next.counted = s.pool.Draw(size)
	return s.held.write(ctx, keys.StoreItem(owner.Workspace, owner.Deployment, namespace, key), func() (change, error) {
		placed := &row{space: vectors.space, updated: now.Truncate(time.Microsecond), expires: next.expiry(now)}
		return change{row: placed, vectors: vectors.data}, s.put(ctx, owner, next, now, vectors)
	})
}

// put writes an item that was put now, with its vectors.
func (s *Store) put(ctx context.Context, owner Owner, next Item, now time.Time, vectors Vectors) error {
	var standing Item
	condition, marker := table.Absent(), s.isOpen(owner, next.Namespace, next.TTL > 0)
	return record.Decide(ctx, s.table, func(context.Context) (o record.Outbox, err error) {
		o.AddOr(next.put(owner, now, condition), func(item *table.Item) error {
			if item == nil { // the item was deleted meanwhile
				standing, next.version, next.Created, condition = Item{}, 0, now, table.Absent()
				return nil
			}
			standing, err = decode(item)
			next.version, next.Created, condition = standing.version, standing.Created, unchanged(item)
			return err
		})
		switch {
		case len(vectors.data) > 0:
			o.Add(next.putVectors(owner, now, vectors.data))
		case standing.space != "":
			o.Add(table.Delete{Key: next.vectorsKey(owner)})
		}
		o.AddOr(marker, func(item *table.Item) error {
			marker = s.opened(owner, next.Namespace, now, next.TTL > 0, item)
			return nil
		})
		o.Then(func(ctx context.Context) { s.count(ctx, owner, standing, next, now) })
		return o, nil
	})
}

// count counts an item in place of the previous item; the zero value of before means that
// there was no item.
func (s *Store) count(ctx context.Context, owner Owner, before, after Item, now time.Time) {
	s.pool.CountStored(ctx, owner.Workspace, -before.counted, before.expires, nil)
	s.pool.CountStored(ctx, owner.Workspace, after.counted, after.expiry(now), nil)
}

// isOpen checks that the namespace has a marker that no request is about to delete, and that
// the marker says so if items may expire there.
func (s *Store) isOpen(owner Owner, namespace []string, expires bool) table.Write {
	open := table.Equals(attrOpen, true)
	if expires {
		open = table.All(open, table.Equals(attrFades, true))
	}
	return table.Check{Key: keys.StoreNamespace(owner.Workspace, owner.Deployment, namespace), If: open}
}

// opened returns the write of a new marker in place of the existing marker, if a marker exists.
func (s *Store) opened(owner Owner, namespace []string, now time.Time, expires bool, standing *table.Item) table.Write {
	key := keys.StoreNamespace(owner.Workspace, owner.Deployment, namespace)
	put := record.New(key, markerKind, now, table.Attrs{attrOpen: true, attrFades: expires}, nil)
	put.Item.Index = map[table.Index]table.Key{table.ByList: keys.StoreNamespaceEntry(owner.Workspace, owner.Deployment, namespace)}
	if standing != nil {
		put.If = unchanged(standing)
		put.Item.Attrs[attrFades] = expires || standing.Bool(attrFades)
		put.Item.Attrs[record.Version] = standing.Int(record.Version) + 1
	}
	return put
}

// unchanged is the condition that a marker or an item is as it was read. Another item that has its
// key, after it was deleted, has the same versions, but another time of its creation.
func unchanged(read *table.Item) table.Cond {
	return table.All(table.Equals(record.Version, read.Int(record.Version)), table.Equals(record.Created, read.Text(record.Created)))
}

// Get returns an item. If refresh is set, it renews the item's time to live as if the item had
// been written now. It returns a fault.NotFound for an unknown item.
func (s *Store) Get(ctx context.Context, owner Owner, namespace []string, key string, refresh bool) (Item, error) {
	if err := checkName(owner, namespace, key); err != nil {
		return Item{}, err
	}
	missing := fault.New(fault.NotFound, "There is no item with the key %.100q in the namespace.", key)
	item, err := record.One(ctx, s.table, "item", keys.StoreItem(owner.Workspace, owner.Deployment, namespace, key), missing, decode)
	if err == nil && refresh {
		err = s.refresh(ctx, owner, item)
	}
	return item, err
}

// refreshGrain is the part of its time to live (1/refreshGrain) that an item may lose before a
// read writes it again, so that not each read is a write.
const refreshGrain = 20

// refreshesAtOnce is how many items are refreshed in parallel: a search may find a thousand.
const refreshesAtOnce = 16

// refresh renews the time to live of items. An item that was written meanwhile needs no
// refresh.
func (s *Store) refresh(ctx context.Context, owner Owner, items ...Item) error {
	now := s.now()
	refreshes, ctx := errgroup.WithContext(ctx)
	refreshes.SetLimit(refreshesAtOnce)
	for _, item := range items {
		if item.TTL == 0 || item.expires.Sub(now) > item.TTL-item.TTL/refreshGrain {
			continue
		}
		at := keys.StoreItem(owner.Workspace, owner.Deployment, item.Namespace, item.Key)
		refreshes.Go(guard.ErrFunc(nil, "refresh an item", func() error {
			return s.held.write(ctx, at, func() (change, error) { return s.renew(ctx, owner, item, now) })
		}))
	}
	if err := refreshes.Wait(); err != nil {
		return fmt.Errorf("refresh item: %w", err)
	}
	return nil
}

// renew renews the time to live of an item and its vectors. An item that was written meanwhile
// stays as it is.
func (s *Store) renew(ctx context.Context, owner Owner, item Item, now time.Time) (renewal change, err error) {
	renewal.renewed = true
	renewed := item.put(owner, now, table.Absent())
	renewed.If = table.All(table.Equals(record.Version, item.version), table.Equals(record.Created, renewed.Item.Text(record.Created)))
	o := record.Write(renewed)
	if item.space != "" {
		vectors, err := s.table.Get(ctx, item.vectorsKey(owner))
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return renewal, fmt.Errorf("get vectors: %w", err)
		}
		if err == nil {
			o.Add(item.putVectors(owner, now, vectors.Body))
		}
	}
	o.Then(func(ctx context.Context) {
		renewal.row = &row{expires: item.expiry(now)}
		s.count(ctx, owner, item, item, now)
	})
	if err = record.Commit(ctx, s.table, o); errors.Is(err, record.ErrLost) {
		err = nil
	}
	return renewal, err
}

// Delete removes an item. With the last item it also removes the namespace. It is no error if
// the item does not exist.
func (s *Store) Delete(ctx context.Context, owner Owner, namespace []string, key string) error {
	if err := checkName(owner, namespace, key); err != nil {
		return err
	}
	at := keys.StoreItem(owner.Workspace, owner.Deployment, namespace, key)
	err := s.held.write(ctx, at, func() (change, error) { return change{}, s.remove(ctx, owner, at) })
	if err != nil {
		return err
	}
	return s.tidy(ctx, owner, namespace)
}

// remove removes an item and its vectors.
func (s *Store) remove(ctx context.Context, owner Owner, at table.Key) error {
	return record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		stored, err := record.Get(ctx, s.table, "item", at, nil)
		if err != nil || stored == nil {
			return o, err
		}
		item, err := decode(stored)
		o.Add(table.Delete{Key: at, If: unchanged(stored)})
		if item.space != "" {
			o.Add(table.Delete{Key: keys.StoreVectors(at)})
		}
		o.Then(func(ctx context.Context) { s.count(ctx, owner, item, Item{}, s.now()) })
		return o, err
	})
}

// tidy deletes the marker of a namespace that has no items.
func (s *Store) tidy(ctx context.Context, owner Owner, namespace []string) error {
	if empty, err := s.isEmpty(ctx, owner, namespace); err != nil || !empty {
		return err
	}
	marker := keys.StoreNamespace(owner.Workspace, owner.Deployment, namespace)
	item, err := record.Get(ctx, s.table, "namespace", marker, nil)
	if err != nil || item == nil {
		return err
	}
	closed, created := item.Int(record.Version)+1, item.Text(record.Created)
	closing, err := record.Try(ctx, s.table, record.Change(marker, s.now(), table.Attrs{attrOpen: false}, unchanged(item)))
	if err != nil || !closing {
		return err
	}
	empty, err := s.isEmpty(ctx, owner, namespace)
	if err != nil {
		return err
	}
	still := table.All(table.Equals(record.Version, closed), table.Equals(record.Created, created), table.Equals(attrOpen, false))
	var write table.Write = table.Delete{Key: marker, If: still}
	if !empty {
		write = record.Change(marker, s.now(), table.Attrs{attrOpen: true}, still)
	}
	_, err = record.Try(ctx, s.table, write)
	return err
}

func (s *Store) isEmpty(ctx context.Context, owner Owner, namespace []string) (bool, error) {
	item, err := record.First(table.WithoutContents(ctx), s.table, "items", keys.StoreItemsOf(owner.Workspace, owner.Deployment, namespace))
	return item == nil, err
}

// eraseMargin is the time before the deadline of its caller after which Erase begins no other page.
const eraseMargin = 10 * time.Second

// Erase removes the items that a deployment has stored. It ends early when the time of the caller
// runs out, but never before its first page, and reports whether more may be left.
func (s *Store) Erase(ctx context.Context, workspace, deployment string) (more bool, err error) {
	owner := Owner{workspace, deployment}
	for first := ""; !more; {
		if first, err = s.nextLabel(ctx, owner, first); err != nil || first == "" {
			return false, err
		}
		if more, err = s.erasePartition(ctx, owner, first); err != nil {
			return false, err
		}
	}
	return more, nil
}

func (s *Store) erasePartition(ctx context.Context, owner Owner, first string) (more bool, err error) {
	queries := keys.StorePartition(owner.Workspace, owner.Deployment, first)
	defer s.held.erased(queries[0].PK)
	for _, query := range queries {
		for items, err := range table.Erased(ctx, s.table, query) {
			if err != nil {
				return false, err
			}
			lasting := int64(0)
			for _, item := range items {
				if item.Expires.IsZero() { // the count of the other items ends with their month
					lasting += item.Int(attrCounted)
				}
			}
			s.count(ctx, owner, Item{counted: lasting}, Item{}, s.now())
			if clock.EndsWithin(ctx, eraseMargin) {
				return true, nil
			}
		}
	}
	return false, nil
}
