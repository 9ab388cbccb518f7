package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/table"
)

// searchPage is how many items are in memory at a time, beside those that are found.
const searchPage = 100

// tidyLimit is how many empty namespaces a search clears up at most.
const tidyLimit = 10

// Search returns the items below a namespace, which may be empty, that the filter lets pass. It lets them live on when refresh is set.
func (s *Store) Search(ctx context.Context, owner Owner, below []string, filter Filter, window table.Window, refresh bool) ([]Item, error) {
	if len(below) > 0 {
		if err := CheckNamespace(below); err != nil {
			return nil, err
		}
	}
	found, skip, seen := []Item{}, window.Offset, false
	for item, err := range s.below(ctx, owner, below, min(window.Offset+window.Limit, searchPage)) {
		if err != nil {
			return nil, err
		}
		seen = true
		ok, err := filter.Matches(item.Value)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if found = append(found, item); len(found) == window.Limit {
			break
		}
	}
	if !seen {
		return found, s.tidyBelow(ctx, owner, below)
	}
	if refresh {
		return found, s.refresh(ctx, owner, found...)
	}
	return found, nil
}

// below are the items below a namespace, in the order of their names; below all namespaces, one partition after the other.
func (s *Store) below(ctx context.Context, owner Owner, namespace []string, limit int) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if len(namespace) > 0 {
			s.items(ctx, keys.StoreItemsBelow(owner.Workspace, owner.Deployment, namespace), limit, yield)
			return
		}
		for first := ""; ; {
			var err error
			if first, err = s.nextLabel(ctx, owner, first); err != nil {
				yield(Item{}, err)
				return
			}
			if first == "" || !s.items(ctx, keys.StoreItemsBelow(owner.Workspace, owner.Deployment, []string{first}), limit, yield) {
				return
			}
		}
	}
}

func (s *Store) items(ctx context.Context, query table.Query, limit int, yield func(Item, error) bool) (more bool) {
	query.Limit = max(limit, 1)
	for {
		page, err := s.table.Query(ctx, query)
		if err != nil {
			yield(Item{}, fmt.Errorf("query items: %w", err))
			return false
		}
		for _, stored := range page.Items {
			item, err := decode(stored)
			if !yield(item, err) || err != nil {
				return false
			}
		}
		if query.Cursor = page.Cursor; page.Cursor == "" {
			return true
		}
	}
}

// nextLabel returns the first label of the namespaces behind those of another, "" when there is none.
func (s *Store) nextLabel(ctx context.Context, owner Owner, after string) (string, error) {
	query := keys.StoreNamespacesAfter(owner.Workspace, owner.Deployment, after)
	query.Limit = 1
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return "", fmt.Errorf("query namespaces: %w", err)
	}
	if len(page.Items) == 0 {
		return "", nil
	}
	path, err := keys.ParseStorePath(page.Items[0].Index[table.ByList].SK)
	if err != nil {
		return "", err
	}
	return path[0], nil
}

func (s *Store) tidyBelow(ctx context.Context, owner Owner, below []string) error {
	query := keys.StoreNamespaces(owner.Workspace, owner.Deployment, below)
	query.Limit = tidyLimit
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return fmt.Errorf("query namespaces: %w", err)
	}
	for _, item := range page.Items {
		namespace, err := keys.ParseStorePath(item.Index[table.ByList].SK)
		if err == nil {
			err = s.tidy(ctx, owner, namespace)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Namespaces says which namespaces are wanted. In Prefix and Suffix the label "*" stands for any.
type Namespaces struct {
	Prefix, Suffix []string
	// MaxDepth cuts namespaces to so many labels; 0 does not.
	MaxDepth int
	table.Window
}

// Namespaces lists the namespaces that have items, by name, each once.
func (s *Store) Namespaces(ctx context.Context, owner Owner, wanted Namespaces) ([][]string, error) {
	var fixed []string
	for _, label := range wanted.Prefix {
		if label == "*" {
			break
		}
		fixed = append(fixed, label)
	}
	query := keys.StoreNamespaces(owner.Workspace, owner.Deployment, fixed)
	if len(query.Prefix) > table.MaxKey {
		return nil, fault.New(fault.Invalid, "prefix is longer than a namespace can be.")
	}
	found, skip, last := [][]string{}, wanted.Offset, []string(nil)
	for {
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("query namespaces: %w", err)
		}
		for _, item := range page.Items {
			namespace, err := keys.ParseStorePath(item.Index[table.ByList].SK)
			if err != nil {
				return nil, err
			}
			if !wanted.match(namespace) {
				continue
			}
			if wanted.MaxDepth > 0 {
				namespace = namespace[:min(len(namespace), wanted.MaxDepth)]
			}
			// What begins alike lies together.
			if last != nil && slices.Equal(last, namespace) {
				continue
			}
			if last = namespace; skip > 0 {
				skip--
				continue
			}
			if found = append(found, namespace); len(found) == wanted.Limit {
				return found, nil
			}
		}
		if query.Cursor = page.Cursor; page.Cursor == "" {
			return found, nil
		}
	}
}

func (n Namespaces) match(namespace []string) bool {
	return len(namespace) >= max(len(n.Prefix), len(n.Suffix)) &&
		like(namespace[:len(n.Prefix)], n.Prefix) && like(namespace[len(namespace)-len(n.Suffix):], n.Suffix)
}

func like(labels, pattern []string) bool {
	for i, label := range pattern {
		if label != "*" && label != labels[i] {
			return false
		}
	}
	return true
}
