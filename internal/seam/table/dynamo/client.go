package dynamo

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const (
	// attemptTimeout is when the client gives up an unanswered request and sends it again.
	// DynamoDB answers in milliseconds, or not at all.
	attemptTimeout = 10 * time.Second
	// firstDelay and maxDelay bound the time before a retry: a random part of a limit that
	// doubles from firstDelay up to maxDelay.
	firstDelay, maxDelay = 25 * time.Millisecond, 2 * time.Second
)

// newClient makes a client with this package's retries, in place of those that the configuration
// asks for. An HTTP client other than the SDK's own is used as it is. Without a patience, a
// caller's context says how long it waits, and retries have no quota.
func newClient(cfg aws.Config, patience time.Duration) *dynamodb.Client {
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	if own, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		cfg.HTTPClient = own.WithTimeout(attemptTimeout)
	}
	var quota retry.RateLimiter = ratelimit.None
	if patience > 0 {
		quota = ratelimit.NewTokenRateLimit(retry.DefaultRetryRateTokens)
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = patient{newRetryer(quota), patience}
		o.RetryMaxAttempts = 0
		o.APIOptions = append(o.APIOptions, addStart)
	})
}

// newRetryer adds to the SDK's list of errors that may be retried. limiter is the quota of
// retries over several calls.
func newRetryer(limiter retry.RateLimiter) *retry.Standard {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.RateLimiter = limiter
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(mayPass))
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return delay(attempt), nil })
	})
}

// delay is how long to wait after an attempt. The first attempt is 1.
func delay(attempt int) time.Duration {
	limit := maxDelay
	if attempt < 8 {
		limit = min(limit, firstDelay<<(attempt-1))
	}
	return rand.N(limit)
}

// mayPass knows the transient errors that the SDK does not know: a transaction that conflicted
// with another one, and an answer that was cut off.
func mayPass(err error) aws.Ternary {
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		_, reason := decisive(canceled)
		return aws.BoolTernary(isTransient(aws.ToString(reason.Code)))
	}
	var conflict *types.TransactionConflictException
	var torn *smithy.DeserializationError
	if errors.As(err, &conflict) || errors.As(err, &torn) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

const (
	reasonNone            = "None"
	reasonConditionFailed = "ConditionalCheckFailed"
)

// decisive returns the reason of the first write that stopped a transaction, and the index of
// that write. A later write must not decide: in another attempt, the first one could fail its
// condition too, and Transact must name the first failure.
func decisive(canceled *types.TransactionCanceledException) (int, types.CancellationReason) {
	for i, reason := range canceled.CancellationReasons {
		if code := aws.ToString(reason.Code); code != "" && code != reasonNone {
			return i, reason
		}
	}
	return -1, types.CancellationReason{}
}

func isTransient(code string) bool {
	switch code {
	case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
		return true
	}
	return false
}
