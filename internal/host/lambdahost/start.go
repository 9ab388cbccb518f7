package lambdahost

import (
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Function is what Lambda calls: the result of Buffered, Streaming, Task, Schedule or
// Authorizer.
type Function any

// Start makes the function and serves it until the process ends. A function that cannot be made
// ends the process at once, which shows as a failed initialization.
func Start(open func(log *slog.Logger) (Function, error)) {
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
