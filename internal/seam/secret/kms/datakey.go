package kms

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// wrappedBy is the attribute with the ARN of the KMS key, for people who look at the table.
const wrappedBy = "kms_key"

// Rotate adds a data key. The new key seals from then on.
func Rotate(ctx context.Context, cfg Config) error {
	items, err := table.AllItems(ctx, cfg.Table, keys.DataKeys())
	if err == nil {
		_, err = cfg.create(ctx, len(items)+1)
	}
	if err != nil {
		return fmt.Errorf("rotate data key: %w", err)
	}
	return nil
}

// roots returns the data keys, oldest first. There is always at least one.
func (c Config) roots(ctx context.Context) ([][]byte, error) {
	items, err := table.AllItems(ctx, c.Table, keys.DataKeys())
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		root, err := c.create(ctx, 1)
		if err == nil {
			return [][]byte{root}, nil
		}
		if _, taken := errors.AsType[*table.ConditionFailed](err); !taken {
			return nil, err
		}
		// Another process was first.
		if items, err = table.AllItems(ctx, c.Table, keys.DataKeys()); err != nil {
			return nil, err
		}
	}
	roots := make([][]byte, 0, len(items))
	for _, item := range items {
		root, err := c.unwrap(ctx, item.Body)
		if err != nil {
			return nil, fmt.Errorf("data key %s: %w", item.Key.SK, err)
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// create makes a data key and stores it wrapped. When there already is a key of that number,
// the error is a *table.ConditionFailed.
func (c Config) create(ctx context.Context, number int) ([]byte, error) {
	if len(c.Context) == 0 {
		return nil, errors.New("without an encryption context a wrapped key would open anywhere")
	}
	generated, err := c.Client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: &c.KeyID, KeySpec: types.DataKeySpecAes256, EncryptionContext: c.Context,
	})
	if err != nil {
		return nil, err
	}
	item := table.Item{Key: keys.DataKey(number), Body: generated.CiphertextBlob, Attrs: table.Attrs{}}
	if generated.KeyId != nil {
		item.Attrs[wrappedBy] = *generated.KeyId
	}
	if err := c.Table.Transact(ctx, table.Put{Item: item, If: table.Absent()}); err != nil {
		return nil, fmt.Errorf("keep data key %d: %w", number, err)
	}
	return generated.Plaintext, nil
}

func (c Config) unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	opened, err := c.Client.Decrypt(ctx, &kms.DecryptInput{KeyId: &c.KeyID, CiphertextBlob: wrapped, EncryptionContext: c.Context})
	if _, ok := errors.AsType[*types.InvalidCiphertextException](err); ok {
		return nil, fmt.Errorf("it was wrapped for another installation, or changed: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return opened.Plaintext, nil
}
