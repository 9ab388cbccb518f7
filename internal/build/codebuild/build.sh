#!/bin/bash
# Builds one commit into an image. Everything it needs is in SLIPWAY_ variables (specification.go); what it found out is in $SLIPWAY_DIR/result, a file
# to source. It ends well when the repository is to blame: the result says so. Any other failure ends it with an error.
set -Eeuo pipefail
umask 022

dir=$SLIPWAY_DIR
rm -rf "$dir/work"
mkdir -p "$dir/work/tree" "$dir/work/home" "$dir/work/tmp" "$dir/work/context"
work=$(realpath "$dir/work")
tree=$work/tree log=$work/log
: >"$dir/result"
: >"$log"

answer() { printf 'export %s=%q\n' "$1" "$2" >>"$dir/result"; }
for variable in SLIPWAY_COMMIT_SHA SLIPWAY_IMAGE SLIPWAY_GRAPHS SLIPWAY_FAILURE_REASON SLIPWAY_FAILURE_MESSAGE; do answer $variable ''; done

# fail REASON MESSAGE: the repository is to blame.
fail() {
  printf '%s: %s\n' "$1" "$2"
  answer SLIPWAY_FAILURE_REASON "$1"
  answer SLIPWAY_FAILURE_MESSAGE "$(printf %s "$2" | jq -Rs .)"
  exit 0
}

# The end of what the last command printed.
last_words() {
  if [ -s "$log" ]; then printf 'Its last output:\n%s' "$(tail -n 20 "$log" | tail -c 2000 | iconv -c -f utf-8 -t utf-8)"; else printf 'It printed nothing.'; fi
}

# left is how many seconds the build has; at least one, for a command that is to be stopped at once.
left() { local rest=$((SLIPWAY_TIMEOUT - SECONDS)); echo $((rest > 1 ? rest : 1)); }
over() { [ "$SECONDS" -ge "$SLIPWAY_TIMEOUT" ]; }

# git reads no configuration but this. A repository may belong to another user, because cloning only reads it. A transfer that stalls ends after half a minute.
cat >"$work/gitconfig" <<'CONFIG'
[safe]
	directory = *
[core]
	hooksPath = /dev/null
	askPass =
[credential]
	helper =
[http]
	lowSpeedLimit = 1000
	lowSpeedTime = 30
[advice]
	detachedHead = false
[init]
	defaultBranch = main
[gc]
	auto = 0
CONFIG
export HOME=$work/home LC_ALL=C
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=$work/gitconfig GIT_TERMINAL_PROMPT=0 GIT_ASKPASS='' GIT_ALLOW_PROTOCOL=$SLIPWAY_PROTOCOLS
export GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=accept-new'
trouble='no credentials are known for it'
if [ -n "${SLIPWAY_GIT_CREDENTIALS:-}" ]; then
  # git asks the helper, which answers from the environment: the credentials are on no command line and in no file.
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="credential.$SLIPWAY_REPOSITORY_SCOPE.helper"
  # shellcheck disable=SC2016
  export GIT_CONFIG_VALUE_0='!f() { if [ "$1" = get ]; then printf "username=%s\npassword=%s\n" "${SLIPWAY_GIT_CREDENTIALS%%:*}" "${SLIPWAY_GIT_CREDENTIALS#*:}"; fi; }; f'
  trouble='it may have refused the credentials'
fi

unreachable() {
  over && fail BUILD_TIMEOUT "the build was stopped after $SLIPWAY_TIMEOUT seconds, while cloning the repository."
  fail REPOSITORY_UNREACHABLE "the repository $SLIPWAY_REPOSITORY cannot be cloned: it does not exist, cannot be reached, or $trouble. $(last_words)"
}

# Whether the repository can be reached, and has the ref, are told by exit codes; no words of git are parsed.
echo "cloning $SLIPWAY_REPOSITORY at $SLIPWAY_REF"
code=0
refs=$(timeout 20 git ls-remote --exit-code -- "$SLIPWAY_REPOSITORY" "$SLIPWAY_REF" 2>"$log") || code=$?
case $code in
  0 | 2) ;;
  124) fail REPOSITORY_UNREACHABLE "the repository $SLIPWAY_REPOSITORY did not answer within 20 s. $(last_words)" ;;
  *) unreachable ;;
esac
# git also lists refs that end in the one asked for.
if ! cut -f 2 <<<"$refs" | grep -qxF -- "$SLIPWAY_REF"; then
  case $SLIPWAY_REF in
    refs/heads/*) kind=branch name=${SLIPWAY_REF#refs/heads/} ;;
    refs/tags/*) kind=tag name=${SLIPWAY_REF#refs/tags/} ;;
    *) kind=ref name=$SLIPWAY_REF ;;
  esac
  fail REF_NOT_FOUND "the repository $SLIPWAY_REPOSITORY has no $kind named \"$name\"."
fi
cd "$tree"
git init -q --template=
git remote add -- origin "$SLIPWAY_REPOSITORY"
timeout "$(left)" git fetch -q --depth=1 --no-tags --no-recurse-submodules origin "$SLIPWAY_REF" >"$log" 2>&1 || unreachable
commit=$(git rev-parse -q --verify 'FETCH_HEAD^{commit}') || fail REF_NOT_FOUND "$SLIPWAY_REF of the repository $SLIPWAY_REPOSITORY does not name a commit."
git checkout -q --detach "$commit"
if [ -e .gitmodules ] && ! timeout "$(left)" git submodule --quiet update --init --recursive --depth=1 >"$log" 2>&1; then
  over && unreachable
  fail REPOSITORY_UNREACHABLE "a submodule of the repository $SLIPWAY_REPOSITORY cannot be cloned. $(last_words)"
fi
unset SLIPWAY_GIT_CREDENTIALS
echo "commit $commit"
answer SLIPWAY_COMMIT_SHA "$commit"

# file PATH: where the file is in the tree; fails if it is none of the tree, after following links, or too large. The path is taken from the root of the tree.
file() {
  local found
  found=$(realpath -m -- "$tree/$1")
  case $found in "$tree"/*) ;; *) return 1 ;; esac
  [ -e "$found" ] || return 2
  [ -f "$found" ] && [ "$(stat -c %s -- "$found")" -le 1048576 ] || return 1
  printf '%s' "$found"
}

path=$SLIPWAY_CONFIG_PATH code=0
case $path in
  /*) code=1 ;;
  *) config=$(file "$path") || code=$? ;;
esac
case $code in
  0) ;;
  2) fail CONFIG_NOT_FOUND "the repository has no framework configuration file \"$path\" at this commit." ;;
  *) fail CONFIG_INVALID "the framework configuration file \"$path\" cannot be read: it leaves the repository, is no file, or is larger than 1048576 bytes." ;;
esac
# Where the file is called from, which links may make another place than where it is.
place=$(dirname -- "$(realpath -ms -- "/$path")")
place=${place#/}
if ! jq -se 'length == 1 and (.[0] | type) == "object"' "$config" >/dev/null 2>"$log"; then
  fail CONFIG_INVALID "$path is not a JSON object. $(grep -v '^$' "$log" | head -c 500 || true)"
fi
if ! [[ $place =~ ^[A-Za-z0-9._/-]*$ ]]; then
  fail CONFIG_INVALID "the directory \"$place\" of the framework configuration file has characters that are none of letters, digits, \".\", \"_\" and \"-\"."
fi
dotenv=/dev/null state=none
name=$(jq -r '.env | if type == "string" then . else "" end' "$config")
if [ -n "$name" ]; then
  state=read
  dotenv=$(file "$place/$name") || { [ $? = 2 ] && state=absent || state=wrong; dotenv=/dev/null; }
fi
here=$(dirname -- "${BASH_SOURCE[0]}")
if ! jq -f "$here/config.jq" --arg dir "$place" --arg dotenv_state "$state" --rawfile dotenv "$dotenv" "$config" >"$work/config.json"; then
  fail CONFIG_INVALID "$path cannot be used."
fi
get() { jq "$@" "$work/config.json"; }
if [ "$(get '.problems | length')" != 0 ]; then
  fail CONFIG_INVALID "$path cannot be used:$(get -r '.problems[] | "\n- " + .' | grep -v '^$' | sed '1s/^/\n/')"
fi
get -r '.remarks[]'

# The build command is a stranger's. It runs as a user that can read neither the environment of this shell, where the way to the project's role is, nor
# the docker socket, and gets an environment of its own.
if [ "$(get '.build != null')" = true ]; then
  text=$(get -r .text)
  echo "running the build command $text"
  args=()
  while IFS= read -rd '' arg; do args+=("$arg"); done < <(get -j '.build[] | ., "\u0000"')
  clean=(env -i "PATH=$PATH" "HOME=$work/home" "TMPDIR=$work/tmp" CI=true LANG=C.UTF-8)
  for network in GOPROXY GOSUMDB GOTOOLCHAIN SSL_CERT_FILE HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
    [ -z "${!network:-}" ] || clean+=("$network=${!network}")
  done
  as=()
  if [ "$(id -u)" = 0 ]; then
    chown -R 65534:65534 "$tree" "$work/home" "$work/tmp"
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs)
    # It has to get into its directory, and to see nothing else there.
    chmod 711 "$dir" "$work"
    chmod 600 "$dir/result" "$log"
  fi
  : >"$log"
  (cd "$tree/$place" && exec timeout --kill-after=10 "$(left)" "${as[@]}" "${clean[@]}" "${args[@]}") >>"$log" 2>&1 &
  running=$!
  tail -n +1 -s 0.1 -f --pid="$running" "$log" &
  shown=$!
  code=0
  wait "$running" || code=$?
  wait "$shown" || true
  if [ $code != 0 ] && over; then
    fail BUILD_TIMEOUT "the build was stopped after $SLIPWAY_TIMEOUT seconds, while the build command $text was running. $(last_words)"
  elif [ $code -gt 128 ]; then
    fail BUILD_COMMAND_FAILED "the build command $text was killed by signal $((code - 128)). $(last_words)"
  elif [ $code != 0 ]; then
    fail BUILD_COMMAND_FAILED "the build command $text exited with code $code. $(last_words)"
  fi
fi

# The tree is a directory of the context, so that no .dockerignore of the repository has a say in what is copied. Docker files know no arguments with any character
# but in JSON, so the environment of the configuration file is set by a shell that the agent replaces; what the agent is given at run time wins.
find "$tree" -name .git -prune -exec rm -rf {} +
mv "$tree" "$work/context/app"
image=$SLIPWAY_IMAGE_REPOSITORY:$SLIPWAY_IMAGE_TAG
{
  echo '#!/bin/sh'
  get -r '.env | to_entries[] | "[ -n \"${\(.key)+set}\" ] || { \(.key)=\(.value | @sh); export \(.key); }"'
  # shellcheck disable=SC2016
  echo 'exec "$@"'
} >"$work/context/start"
cat >"$work/Dockerfile" <<DOCKERFILE
FROM $SLIPWAY_BASE_IMAGE
COPY start /opt/slipway/start
COPY --chown=10001:10001 app /opt/agent
LABEL slipway.workspace="$SLIPWAY_WORKSPACE_ID" slipway.deployment="$SLIPWAY_DEPLOYMENT_ID" slipway.revision="$SLIPWAY_REVISION_ID" slipway.commit="$commit"
ENV HOME=/tmp HOST=0.0.0.0 PORT=8080
EXPOSE 8080
WORKDIR /opt/agent/$place
USER 10001:10001
ENTRYPOINT $(get -c '(if .env == {} then [] else ["/bin/sh", "/opt/slipway/start"] end) + .start')
DOCKERFILE
export DOCKER_CONFIG=$work/docker
aws ecr get-login-password | docker login --username AWS --password-stdin "${SLIPWAY_IMAGE_REPOSITORY%%/*}"
docker build --quiet --tag "$image" --file "$work/Dockerfile" "$work/context"
docker push --quiet "$image"
digest=$(docker image inspect --format '{{json .RepoDigests}}' "$image" | jq -r --arg repository "$SLIPWAY_IMAGE_REPOSITORY@" 'map(select(startswith($repository)))[0] // empty')
[ -n "$digest" ] || { echo 'the registry has named no digest' >&2; exit 1; }
answer SLIPWAY_IMAGE "$digest"
answer SLIPWAY_GRAPHS "$(get -c .graphs)"
