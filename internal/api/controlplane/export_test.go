package controlplane

// ParseContract loads a document as Register does.
var ParseContract = parseContract
