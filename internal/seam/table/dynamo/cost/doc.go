// Package cost measures how much the AWS stack consumes of its DynamoDB table: for each
// operation of its interfaces, for runs and rollouts, and in the background when there is no
// work. Its test (tag cost) serves the stack on this machine, with a meter in front of
// DynamoDB Local, and writes ../COST.md.
package cost
