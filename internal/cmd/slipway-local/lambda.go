package main

import "github.com/spf13/cobra"

const lambdaLong = `Serve template.yaml on this machine: the built functions (make functions) run as processes behind an API Gateway that reads the
routes, authorizers and responses of the template. The table is in DynamoDB Local; workflows, keys and agents are this program's.
Everything is kept in one directory.

The server is ready when it has written credentials.json into that directory, which tells clients how to reach it.`

func newLambda() *cobra.Command {
	return newServe(&cobra.Command{Use: "lambda", Short: "Serve the stack with its functions as processes", Long: lambdaLong}, config{})
}
