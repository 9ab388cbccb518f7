#!/bin/bash
# Writes an image of this machine's own Python, Node and shell to stdout, as an archive for
# `docker import`: the tests can reach no registry of images. It stands in for the official images
# of the languages: a shell, some programs, an interpreter with pip or npm, and the certificates of
# package registries.
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,usr/bin,usr/lib,usr/local/bin,usr/local/lib,etc/ssl/certs,tmp,root}
chmod 1777 "$root/tmp"
printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

# with_libraries FILE...: what the files are linked with.
with_libraries() {
  ldd "$@" 2>/dev/null | grep -o '/[^ )]*' | grep -v ':$' | sort -u | while read -r library; do
    [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")"; cp -L "$library" "$root$library"; }
  done
}

cp -L "$(command -v dash || command -v sh)" "$root/bin/sh"
for program in cat chown cp env head ls mkdir rm seq sleep touch; do cp -L "$(command -v "$program")" "$root/usr/bin/"; done

prefix=$(python3 -c 'import sys; print(sys.base_prefix)')
version=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
cp -L "$prefix/bin/$version" "$root/usr/local/bin/python3"
mkdir -p "$root/usr/local/lib/$version/site-packages"
tar -C "$prefix/lib/$version" --exclude=./test --exclude=./idlelib --exclude=./tkinter --exclude=./site-packages --exclude='./config-*' --exclude=__pycache__ -c . |
  tar -C "$root/usr/local/lib/$version" -x
cp -a "$prefix/lib/$version/site-packages"/pip* "$root/usr/local/lib/$version/site-packages/"

npm=$(dirname "$(dirname "$(realpath "$(command -v npm)")")")
cp -L "$(command -v node)" "$root/usr/local/bin/node"
mkdir -p "$root/usr/local/lib/node_modules"
cp -a "$npm" "$root/usr/local/lib/node_modules/npm"
for name in npm npx; do ln -s "../lib/node_modules/npm/bin/$name-cli.js" "$root/usr/local/bin/$name"; done

with_libraries "$root"/bin/* "$root"/usr/bin/* "$root/usr/local/bin/python3" "$root/usr/local/bin/node"
with_libraries "$root/usr/local/lib/$version"/lib-dynload/*.so
# The libraries that the wheels of package registries expect of any system.
system=$(dirname "$(ldd "$root/bin/sh" | grep -o '/[^ ]*libc.so.6')")
for library in libm.so.6 librt.so.1 libdl.so.2 libutil.so.1 libpthread.so.0 libgcc_s.so.1 libstdc++.so.6; do
  [ -e "$root$system/$library" ] || [ ! -e "$system/$library" ] || cp -L "$system/$library" "$root$system/"
done
tar -C "$root" --owner=0 --group=0 -c .
