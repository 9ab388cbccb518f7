package build

// VersionOf returns the Version of a program with the given stamp and the given notes of the
// toolchain.
var VersionOf = versionOf
