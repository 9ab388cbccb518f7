package files

import "github.com/slipway-run/slipway/internal/seam/revisionlog"

// Watch wakes when a line was written to the log.
func (l *Logs) Watch(log revisionlog.Log) revisionlog.Watcher { return l.watchers.Add(log) }
