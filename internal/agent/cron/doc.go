// Package cron holds runs that begin at given times.
//
// A cron moves on before it fires: one transaction, under the condition that the cron is as it
// was read, sets its next time and notes the time that is being served. So each due time is
// served once, even if many timers check the cron. If no timer was there to serve several due
// times, they count as one due time. Then the run is created, and the note is removed. If a
// timer dies in between, the note stays: after a minute another timer creates the run. The run
// of a due time has always the same thread, and its metadata names the cron and the due time.
// A timer that tries again looks for this run among the newest runs of the thread, and creates
// it only if it is not there. The guarantee is one run for each due time that a timer noticed,
// also after crashes. A run is passed over if it cannot be created (its thread is busy and the
// cron rejects, or its deployment was deleted and may be undeleted). The log reports such a run. A
// cron whose thread or assistant was deleted is disabled when it is due.
package cron
