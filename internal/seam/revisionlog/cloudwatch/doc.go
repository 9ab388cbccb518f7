// Package cloudwatch reads the logs of revisions from CloudWatch Logs, where CodeBuild and ECS
// write them, and adds the lines that listeners send.
//
// A stream's name begins with the id of its revision. The builder's request names the stream
// of a build. The log configuration of their task names the streams of replicas. The name of
// the stream with added lines ends with "/listener". All streams of a log are read as one, in
// the order of their times. Lines of the same millisecond are in the order of their events'
// ids. A line's ID consists of both.
//
// CloudWatch sends no wake-ups, so a watcher is woken at intervals: 3 s after new lines, and up to
// 24 s while the log is silent. The service allows an account a few of these requests per second.
// If it refuses a request, the error is ErrBusy, and the watcher is woken later. It takes some
// seconds until CloudWatch shows a line. MaxDelay covers this delay.
package cloudwatch
