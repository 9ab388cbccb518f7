package framework

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// manager is what a package.json says about its package manager.
type manager struct {
	// name and version are "" if they are not named.
	name, version string
	// refusing reports whether npm runs no other package manager beside this package.json.
	refusing bool
}

// simpleRange matches the ranges of versions that mean the same to every shell.
var simpleRange = regexp.MustCompile(`^[~^]?\d+(\.\d+){0,2}$`)

// managerOf reads the package manager that a directory's package.json names, as packageManager
// ("pnpm@9.1.0+sha512...") or in devEngines. The file may be absent.
func managerOf(root *os.Root, dir string) (manager, error) {
	file := filepath.Join(dir, "package.json")
	if _, ok := firstOf(root, dir, "package.json"); !ok {
		return manager{}, nil
	}
	text, err := readFile(root, file)
	if err != nil {
		return manager{}, build.Fail(build.ReasonConfigInvalid, "%s cannot be read: %v.", file, err)
	}
	var manifest struct {
		PackageManager string `json:"packageManager"`
		DevEngines     struct {
			PackageManager struct{ Name, Version string } `json:"packageManager"`
		} `json:"devEngines"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return manager{}, build.Fail(build.ReasonConfigInvalid, "%s is not a JSON object: %v%s.", file, err, positionOf(text, err))
	}
	engine := manifest.DevEngines.PackageManager
	m := manager{refusing: engine.Name != "" && engine.Name != "npm"}
	var named bool
	m.name, m.version, named = strings.Cut(cmp.Or(manifest.PackageManager, engine.Name), "@")
	m.version, _, _ = strings.Cut(m.version, "+")
	if strings.ContainsFunc(m.version, func(r rune) bool { return !strings.ContainsRune("0123456789.abcdefghijklmnopqrstuvwxyz-", r) }) {
		return manager{}, build.Fail(build.ReasonConfigInvalid, "packageManager of %s: %q is not a version.", file, m.version)
	}
	if !named && m.name == engine.Name && simpleRange.MatchString(engine.Version) {
		m.version = engine.Version
	}
	return m, nil
}

// lockVersion matches the version of the format of pnpm's and of the newer Yarn's lock files.
var lockVersion = regexp.MustCompile(`(?m)^(?:lockfileVersion: *'?|__metadata:\r?\n  version: )(\d+)`)

// lockReaders are the last releases that take a lock file of a format as it is. Later ones refuse
// it, and so does Yarn 1, if it is not Yarn 1's own.
var lockReaders = map[string]string{
	"pnpm-lock.yaml 5": "7.33.7", "pnpm-lock.yaml 6": "8.15.9",
	"yarn.lock 6": "3.8.7", "yarn.lock 8": "4.13.0", "yarn.lock 9": "4.14.1", "yarn.lock 10": "4.18.1",
}

// lockLimit bounds the size of a lock file whose version is read, in bytes.
const lockLimit = 32 << 20

// versionOfLock returns the version of the package manager that a lock file needs, "" if that is
// the version that is used anyhow.
func versionOfLock(root *os.Root, lock string) string {
	text, err := ReadFile(root, lock, lockLimit)
	if err != nil {
		return ""
	}
	match := lockVersion.FindSubmatch(text)
	if match == nil {
		return ""
	}
	return lockReaders[filepath.Base(lock)+" "+string(match[1])]
}
