package agentserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// fireLimit is how many crons of a shard a pass fires.
const fireLimit = 1000

// TestAttackCronsThatCannotBeRead has more due crons than a pass fires, of a deployment whose
// handlers fail, before another tenant's cron in the same shard.
func TestAttackCronsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	well, _ := c.daily(t, object{"on_run_completed": "keep"})
	shard := keys.DueCrons.At(well[len("/runs/crons/"):], time.Time{}).PK
	check.Must(t, c.table.Transact(t.Context(), cipher.Mark("w", "d", time.Now())))
	trouble := error(nil)
	encrypted, err := cipher.Open(t.Context(), c.table, c.crons.Now, func(_ context.Context, _, _ string, _ graph.Operation, asked graph.Encryption) (answer graph.Ciphered, err error) {
		for _, value := range asked.Values {
			answer.Values = append(answer.Values, value.Data)
		}
		return answer, trouble
	})
	check.Must(t, err)
	c.crons.Table = encrypted
	first, err := c.crons.Create(t.Context(), "w", "d", cron.Content{Schedule: "0 8 * * *", Enabled: true})
	check.Must(t, err)
	stored, err := c.table.Get(t.Context(), keys.Cron("w", "d", first.Cron))
	check.Must(t, err)
	early, err := time.Parse(time.RFC3339, "2030-01-01T07:30:00Z")
	check.Must(t, err)
	var of []table.Key
	for len(of) <= fireLimit {
		item := *stored
		cronID := id.New(time.Now())
		item.Key = keys.Cron("w", "d", cronID)
		if item.Index = map[table.Index]table.Key{table.ByDue: keys.DueCrons.At(cronID, early)}; item.Index[table.ByDue].PK != shard {
			continue
		}
		check.Must(t, c.table.Transact(t.Context(), table.Put{Item: item}))
		of = append(of, item.Key)
	}
	trouble = fault.New(fault.Unavailable, "It has failed.")
	c.set(t, "2030-01-01T08:00:01Z")
	for range 2 {
		if err := c.crons.Fire(t.Context(), *c.at.Load()); err != nil && !cipher.IsUnavailable(err) {
			t.Fatal(err)
		}
	}
	c.wantRuns(t, "while the others cannot be read", well, "2030-01-01T08:00")
	trouble = nil
	c.tick(t, "2030-01-01T08:01:00Z")
	c.tick(t, "2030-01-01T08:01:01Z")
	for _, key := range []table.Key{keys.Cron("w", "d", first.Cron), of[0], of[len(of)-1]} {
		item, err := encrypted.Get(t.Context(), key)
		check.Must(t, err)
		if got := item.Text("next"); got != "2030-01-02T08:00:00.000000Z" {
			t.Errorf("after the handlers answer again, the cron's next time is %s", got)
		}
	}
}
