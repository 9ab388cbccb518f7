// Package dynamodb serves DynamoDB Local, the vendor's own emulation, as a child process, and makes
// the stack's table in it from the template.
//
// Maven fetches it into .tools if it is missing there (setup.sh). Its licence allows use with
// an AWS account but no redistribution, so it is never committed. It listens on all
// interfaces, which containers need; it checks no credentials.
package dynamodb
