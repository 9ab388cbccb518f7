package keys

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Cron is the key of a cron, in the partition that holds all crons of its deployment. Ids sort
// by creation.
func Cron(workspace, deployment, cron string) table.Key {
	return table.Key{PK: Crons(workspace, deployment).PK, SK: cron}
}

// Crons asks for a deployment's crons, oldest first.
func Crons(workspace, deployment string) table.Query {
	return table.Query{PK: deploymentPK(workspace, deployment) + "#CRONS"}
}

// CronCount is the key of the count of a deployment's crons, which is bounded.
func CronCount(workspace, deployment string) table.Key {
	return table.Key{PK: Crons(workspace, deployment).PK + "#COUNT", SK: "COUNT"}
}

// CronParts are the ids in a cron's key.
type CronParts struct{ Workspace, Deployment, Cron string }

// ParseCron reads the ids back from a cron's key.
func ParseCron(key table.Key) (CronParts, error) {
	parts := strings.Split(key.PK, "#")
	if len(parts) != 5 || parts[0] != "W" || parts[2] != "D" || parts[4] != "CRONS" {
		return CronParts{}, fmt.Errorf("key %v is not a cron's", key)
	}
	return CronParts{Workspace: parts[1], Deployment: parts[3], Cron: key.SK}, nil
}

// DueCronTime reads back the time when a cron is due.
func DueCronTime(key table.Key) (time.Time, error) {
	at, _, _ := strings.Cut(key.SK, "#")
	return clock.Parse(at)
}
