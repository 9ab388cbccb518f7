package lambdahost

import (
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/aws/aws-lambda-go/lambda"
)

// Function is what Lambda calls: the result of Buffered, Streaming, Task, Schedule or
// Authorizer.
type Function = any

// boundHeap lets the heap grow up to three quarters of the function's memory, given in MB, before
// garbage is collected more often than GOGC says. The template sets GOGC: a function lives for few
// requests and its heap is small, so to collect seldom saves a third of the processor time of a
// start.
func boundHeap(memory string) {
	if mb, err := strconv.ParseInt(memory, 10, 64); err == nil && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(mb << 20 / 4 * 3)
	}
}

// Start makes the function and serves it until the process ends. A function that cannot be made
// ends the process at once, which shows as a failed initialization.
func Start(open func(log *slog.Logger) (Function, error)) {
	boundHeap(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"))
	var level slog.Level
	// The level of Lambda's logging settings; a word that is no level of slog leaves Info.
	_ = level.UnmarshalText([]byte(os.Getenv("AWS_LAMBDA_LOG_LEVEL")))
	log := NewLog(os.Stdout, level)
	function, err := open(log)
	if err != nil {
		log.Error("the function cannot start", "error", err)
		os.Exit(1)
	}
	lambda.Start(function)
}
