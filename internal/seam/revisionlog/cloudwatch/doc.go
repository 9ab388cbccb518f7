// Package cloudwatch reads the logs of revisions from CloudWatch Logs, where CodeBuild and ECS
// write them, and adds to them what listeners hand in.
//
// A stream's name begins with the id of its revision: that of a build by the builder's request,
// those of replicas by the log configuration of their task, that of what is handed in ends with
// "/listener". All streams of a log are read as one, in the order of their times; lines of one
// millisecond in that of their events' ids. A line's ID is both.
//
// CloudWatch wakes nobody, so who watches is woken at intervals; the service allows an account a
// few of these requests per second. And it takes some seconds until it shows a line, which Lag
// stands for.
package cloudwatch

// Actions are what reading needs to be allowed, on the streams of both groups.
var Actions = []string{"logs:FilterLogEvents"}

// AppendActions are what adding lines needs: the first on the group of the agents, the second on
// those of its streams whose name ends with "/listener".
var AppendActions = []string{"logs:CreateLogStream", "logs:PutLogEvents"}
