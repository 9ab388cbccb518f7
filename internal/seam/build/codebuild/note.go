package codebuild

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// note is the data that the table holds about a revision's build.
type note struct {
	// attempt counts from 1; 0 means that there is no note.
	attempt int64
	// token lets CodeBuild recognize a StartBuild that is sent again. It is not derived from
	// the revision, because the revision may be built again after Remove.
	token string
	// build is CodeBuild's id of the attempt's build, "" until StartBuild has answered.
	build string
	// secret reports whether there may be a secret with credentials.
	secret bool
	// failure is the reason why no build was started at all.
	failure string
}

const (
	attrAttempt = "attempt"
	attrToken   = "token"
	attrBuild   = "build"
	attrSecret  = "secret"
	attrFailure = "failure"
)

func (n note) attrs() table.Attrs {
	attrs := table.Attrs{attrAttempt: n.attempt, attrToken: n.token, attrSecret: n.secret}
	if n.failure != "" {
		attrs[attrFailure] = n.failure
	}
	return attrs
}

func (b *Builder) read(ctx context.Context, revision string) (note, error) {
	item, err := b.cfg.Table.Get(ctx, keys.Build(revision))
	if errors.Is(err, table.ErrNotFound) {
		return note{}, nil
	}
	if err != nil {
		return note{}, err
	}
	return decode(item), nil
}

func decode(item *table.Item) note {
	return note{
		attempt: item.Int(attrAttempt), token: item.Text(attrToken), build: item.Text(attrBuild),
		secret: item.Bool(attrSecret), failure: item.Text(attrFailure),
	}
}

// begin notes an attempt that follows the note that was read: the first attempt, the next
// attempt after a failure, or again the attempt that was cut off. Callers that begin at the
// same time get the same attempt.
func (b *Builder) begin(ctx context.Context, revision string, read note, secret bool, failure string) (note, error) {
	if read.attempt > 0 && read.build == "" && read.secret == secret && read.failure == failure {
		return read, nil
	}
	next := note{attempt: max(read.attempt, 1), token: rand.Text(), secret: secret, failure: failure}
	condition := table.Absent()
	if read.attempt > 0 {
		condition = table.Equals(attrToken, read.token)
	}
	if read.build != "" {
		next.attempt++
	}
	err := b.cfg.Table.Transact(ctx, table.Put{Item: table.Item{Key: keys.Build(revision), Attrs: next.attrs()}, If: condition})
	if other, ok := errors.AsType[*table.ConditionFailed](err); ok && other.Item != nil {
		return decode(other.Item), nil
	}
	return next, err
}

// started completes the note of an attempt. If the note is gone, it was removed meanwhile:
// started returns an error, so that the build is not forgotten.
func (b *Builder) started(ctx context.Context, revision string, n note, id string) error {
	n.build = id
	gone, err := b.change(ctx, revision, n, table.Attrs{attrBuild: id})
	if gone {
		return errors.Join(errors.New("the build was removed while it was being started"), b.stop(ctx, n), b.deleteCredentials(ctx, revision))
	}
	return err
}

// change sets attributes of a note. gone reports that there is no such note any more.
func (b *Builder) change(ctx context.Context, revision string, n note, set table.Attrs) (gone bool, err error) {
	err = b.cfg.Table.Transact(ctx, table.Update{Key: keys.Build(revision), Set: set, If: table.Equals(attrToken, n.token)})
	if _, gone = errors.AsType[*table.ConditionFailed](err); gone {
		return true, nil
	}
	return false, err
}
