// Package cron holds runs that begin at given times.
//
// A cron moves on before it fires: one transaction, under the condition that the cron is as it was
// read, sets its next time and notes the time that is being served. So each due time is served
// once, however many timers look, and times that nobody was there to serve are one, not many. Then
// the run is created, and the note taken away. A timer that dies in between leaves the note: after
// a minute another one creates the run. The run of a due time has always the same thread, and on a
// thread of the cron's own the same id, so that it is made once: what is guaranteed is one run for
// each time that was noticed, also across crashes. A run that cannot be created (its thread is
// gone, or busy and the cron rejects, or its deployment was deleted and may be undeleted) is passed
// over and said in the log.
package cron
