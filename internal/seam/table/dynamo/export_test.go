package dynamo

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Names of the table's indexes, of the attributes of their keys, and of the time of expiry.
var (
	Indexes  = indexes
	KeyNames = keyNames
)

const NameExpires = nameExpires

// Sizes of bodies.
const (
	InlineBody = inlineBody
	ChunkSize  = chunkSize
)

// Polls reports whether a goroutine polls watched keys.
func (t *Table) Polls() bool {
	t.looks.mu.Lock()
	defer t.looks.mu.Unlock()
	return t.looks.polling
}

// Delay is how long to wait after an attempt.
var Delay = delay

// Expressions returns the expressions that DynamoDB gets for one write that is decided at a
// time in Unix seconds. Each placeholder is replaced by the name or value that it stands for.
func Expressions(w table.Write, now int64) (condition, update string) {
	e := newExpression(now)
	prepared := newWrite(w)
	condition = aws.ToString(e.guarded(&prepared))
	if u, ok := w.(table.Update); ok {
		update = e.update(u, prepared.ref, "TX")
	}
	return e.resolve(condition), e.resolve(update)
}

// KeyCondition returns the expression that DynamoDB gets for a query.
func KeyCondition(q table.Query) string {
	e := newExpression(0)
	return e.resolve(e.keyCondition(q))
}

var placeholder = regexp.MustCompile(`[#:][0-9]+`)

func (e *expression) resolve(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(short string) string {
		if name, ok := e.names[short]; ok {
			return name
		}
		switch value := e.values[short].(type) {
		case *types.AttributeValueMemberS:
			return strconv.Quote(value.Value)
		case *types.AttributeValueMemberN:
			return value.Value
		case *types.AttributeValueMemberBOOL:
			return strconv.FormatBool(value.Value)
		case *types.AttributeValueMemberB:
			return fmt.Sprintf("%d bytes", len(value.Value))
		}
		return "?"
	})
}

// Name is the table's name in DynamoDB.
func (t *Table) Name() string { return t.name }

// NewClaimKey returns the key of a new claim.
func NewClaimKey(now time.Time) table.Key { return newClaim(now).key }

// SweepTurns is in how many minutes Sweep reads all partitions.
const SweepTurns = sweepTurns

// ClaimPartitions returns the partitions that Sweep reads.
func ClaimPartitions() []string {
	var partitions []string
	for _, shard := range claimShards {
		partitions = append(partitions, claimPartition+string(shard))
	}
	return partitions
}
