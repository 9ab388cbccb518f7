package run

// ShownStatuses is shownStatuses for tests.
var ShownStatuses = shownStatuses
