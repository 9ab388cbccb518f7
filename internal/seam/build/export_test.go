package build

// VersionOf is Version of a program with such a stamp and such notes of the toolchain.
var VersionOf = versionOf
