package codebuild

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/codebuild"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// maxSlots is how many builds BatchGetBuilds looks at.
const maxSlots = 100

// attrHolder is the revision whose build has a slot.
const attrHolder = "holder"

// acquireSlot gives the build of a revision one of its workspace's slots. It returns a
// *build.NoCapacity if builds of the workspace's other revisions have all slots. Nobody gives a
// slot back: it is free when the build of its holder has ended or was removed. So the revision
// must have a note before it takes a slot.
func (b *Builder) acquireSlot(ctx context.Context, workspace, revision string) error {
	if b.cfg.Slots == 0 {
		return nil
	}
	slots := keys.BuildSlots(workspace, b.cfg.Slots)
	items, err := b.cfg.Table.GetBatch(ctx, slots...)
	if err != nil {
		return err
	}
	holders := make([]string, len(items))
	for i, item := range items {
		if item != nil {
			holders[i] = item.Text(attrHolder)
		}
	}
	if slices.Contains(holders, revision) {
		return nil
	}
	building, err := b.building(ctx, holders)
	if err != nil {
		return err
	}
	for i, holder := range holders {
		if building[holder] {
			continue
		}
		if taken, err := b.acquireFrom(ctx, slots[i], holder, revision); err != nil || taken {
			return err
		}
	}
	return &build.NoCapacity{Share: b.cfg.Slots}
}

// acquireFrom gives a slot that a holder had, or that is new if there is no holder, to a revision.
// taken is false if another revision has got it meanwhile.
func (b *Builder) acquireFrom(ctx context.Context, slot table.Key, holder, revision string) (taken bool, err error) {
	condition := table.Absent()
	if holder != "" {
		condition = table.Equals(attrHolder, holder)
	}
	err = b.cfg.Table.Transact(ctx, table.Put{Item: table.Item{Key: slot, Attrs: table.Attrs{attrHolder: revision}}, If: condition})
	if failed, ok := errors.AsType[*table.ConditionFailed](err); ok {
		return failed.Item != nil && failed.Item.Text(attrHolder) == revision, nil
	}
	return err == nil, err
}

// building returns those of the revisions whose build runs, waits or is being started. Names of
// revisions may be empty.
func (b *Builder) building(ctx context.Context, revisions []string) (map[string]bool, error) {
	building, revisionOf := map[string]bool{}, map[string]string{}
	for _, revision := range revisions {
		if revision == "" {
			continue
		}
		note, err := b.read(ctx, revision)
		if err != nil {
			return nil, err
		}
		if note.build != "" {
			revisionOf[note.build] = revision
		}
		building[revision] = note.attempt > 0 && note.build == "" && note.failure == ""
	}
	if len(revisionOf) == 0 {
		return building, nil
	}
	described, err := b.builds.BatchGetBuilds(ctx, &codebuild.BatchGetBuildsInput{Ids: slices.Sorted(maps.Keys(revisionOf))})
	if err != nil {
		return nil, err
	}
	for i := range described.Builds {
		building[revisionOf[aws.ToString(described.Builds[i].Id)]] = inProgress(&described.Builds[i])
	}
	return building, nil
}
