// Package cost measures what the AWS stack consumes of its DynamoDB table: for each operation of
// its interfaces, and for runs, rollouts and what goes on when nothing does. Its test (tag cost)
// serves the stack on this machine, with a meter in front of DynamoDB Local, and writes ../COST.md.
package cost
