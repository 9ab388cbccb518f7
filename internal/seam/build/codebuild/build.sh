#!/bin/bash
# Builds one commit, or one tarball, into an image. Everything it needs is in SLIPWAY_ variables
# (specification.go); its findings are in $SLIPWAY_DIR/result, a file to source. It ends well when
# the repository is to blame: the result says so. Any other failure ends it with an error.
set -Eeuo pipefail
umask 022

dir=$SLIPWAY_DIR
rm -rf "$dir/work"
mkdir -p "$dir/work/tree" "$dir/work/root" "$dir/work/home" "$dir/work/tmp" "$dir/work/context"
work=$(realpath "$dir/work")
tree=$work/tree log=$work/log
: >"$dir/result"
: >"$log"

answer() { printf 'export %s=%q\n' "$1" "$2" >>"$dir/result"; }
for variable in SLIPWAY_COMMIT_SHA SLIPWAY_IMAGE SLIPWAY_GRAPHS SLIPWAY_DESCRIPTIONS SLIPWAY_AUTH SLIPWAY_SETTINGS SLIPWAY_RECORD SLIPWAY_FAILURE_REASON SLIPWAY_FAILURE_MESSAGE; do answer $variable ''; done

# The platform's programs are a layer of its functions, so that they are as old as these.
tools=$work/tools
mkdir -p "$tools"
curl -fsSL -o "$tools/tools.zip" "$(aws lambda get-layer-version-by-arn --arn "$SLIPWAY_TOOLS" --query Content.Location --output text)"
unzip -q "$tools/tools.zip" -d "$tools"
chmod +x "$tools/slipway-recipe"

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

# A tarball is downloaded when it is known to be no larger than it may be; the bucket takes what it
# is sent. It is unpacked below.
download() {
  echo "unpacking $SLIPWAY_TARBALL"
  local object=${SLIPWAY_TARBALL#s3://} size
  if ! size=$(aws s3api head-object --bucket "${object%%/*}" --key "${object#*/}" --query ContentLength --output text 2>"$log"); then
    # S3 forbids to look for what is not there, because the role may not list the bucket.
    if grep -qE '\((403|404)\)' "$log"; then
      fail SOURCE_NOT_FOUND 'nothing was uploaded to the source_tarball_path, or it is not kept any more. PUT the tarball to the upload_url first, or upload it again.'
    fi
    cat "$log" >&2
    exit 1
  fi
  [ "$size" -le "$SLIPWAY_TARBALL_LIMIT" ] || fail SOURCE_TOO_LARGE "what was uploaded has $size bytes, which is more than the $SLIPWAY_TARBALL_LIMIT that it may have."
  aws s3 cp --only-show-errors "$SLIPWAY_TARBALL" "$work/source.tar.gz"
}

# git reads no configuration but this. A repository may belong to another user, because cloning only
# reads it. A transfer that stalls ends after half a minute.
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
# The build command never owns this shell's home: docker and aws run programs that are named there.
export HOME=$work/root LC_ALL=C
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=$work/gitconfig GIT_TERMINAL_PROMPT=0 GIT_ASKPASS='' GIT_ALLOW_PROTOCOL=$SLIPWAY_PROTOCOLS
export GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=accept-new'
trouble='no credentials are known for it'
if [ -n "${SLIPWAY_GIT_CREDENTIALS:-}" ]; then
  # git asks the helper, which answers from the environment: the credentials are on no command line
  # and in no file.
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="credential.$SLIPWAY_REPOSITORY_SCOPE.helper"
  # shellcheck disable=SC2016
  export GIT_CONFIG_VALUE_0='!f() { if [ "$1" = get ]; then printf "username=%s\npassword=%s\n" "${SLIPWAY_GIT_CREDENTIALS%%:*}" "${SLIPWAY_GIT_CREDENTIALS#*:}"; fi; }; f'
  trouble='it may have refused the credentials'
fi

unreachable() {
  over && fail BUILD_TIMEOUT "the build was stopped after $SLIPWAY_TIMEOUT seconds, while cloning the repository."
  fail REPOSITORY_UNREACHABLE "the repository $SLIPWAY_REPOSITORY cannot be cloned: it does not exist, cannot be reached, or $trouble. $(last_words)"
}

clone() {
  # Exit codes tell whether the repository can be reached and has the ref; no words of git are
  # parsed.
  echo "cloning $SLIPWAY_REPOSITORY at $SLIPWAY_REF"
  code=0
  refs=$(timeout 20 git ls-remote --exit-code -- "$SLIPWAY_REPOSITORY" "$SLIPWAY_REF" 2>"$log") || code=$?
  case $code in
    0 | 2) ;;
    124) fail REPOSITORY_UNREACHABLE "the repository $SLIPWAY_REPOSITORY did not answer within 20 s. $(last_words)" ;;
    *) unreachable ;;
  esac
  # git also lists refs that end in the one asked for. Only fetching can tell whether a commit is
  # there.
  if [ -z "$SLIPWAY_COMMIT" ] && ! cut -f 2 <<<"$refs" | grep -qxF -- "$SLIPWAY_REF"; then
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
  timeout "$(left)" git fetch -q --depth=1 --no-tags --no-recurse-submodules origin "${SLIPWAY_COMMIT:-$SLIPWAY_REF}" >"$log" 2>&1 || {
    over || [ -z "$SLIPWAY_COMMIT" ] || fail REF_NOT_FOUND "the repository $SLIPWAY_REPOSITORY does not give out the commit $SLIPWAY_COMMIT any more. $(last_words)"
    unreachable
  }
  commit=$(git rev-parse -q --verify 'FETCH_HEAD^{commit}') || fail REF_NOT_FOUND "$SLIPWAY_REF of the repository $SLIPWAY_REPOSITORY does not name a commit."
  local wrong
  wrong=$(git ls-tree -r -z --name-only "$commit" | "$tools/slipway-recipe" --paths) || true # the program stops reading at the first trouble
  [ -z "$wrong" ] || fail SOURCE_INVALID "the commit $commit cannot be checked out: $wrong."
  timeout "$(left)" git checkout -q --detach "$commit" >"$log" 2>&1 || {
    over && unreachable
    fail SOURCE_INVALID "the commit $commit cannot be checked out. $(last_words)"
  }
  wrong=$(git grep -l -z -e '^version https://git-lfs\.github\.com/spec/v1$' -- ':(attr:filter=lfs)' | head -z -n 1 | tr -d '\0') || true
  [ -z "$wrong" ] || fail SOURCE_INVALID "the commit $commit cannot be checked out: the file \"$wrong\" is in Git LFS, from which nothing is fetched. Put it into the repository itself, or upload the directory with slipway deploy."
  if [ -e .gitmodules ] && ! timeout "$(left)" git submodule --quiet update --init --recursive --depth=1 >"$log" 2>&1; then
    over && unreachable
    fail REPOSITORY_UNREACHABLE "a submodule of the repository $SLIPWAY_REPOSITORY cannot be cloned. $(last_words)"
  fi
  unset SLIPWAY_GIT_CREDENTIALS
  echo "commit $commit"
  answer SLIPWAY_COMMIT_SHA "$commit"
}

if [ -n "$SLIPWAY_TARBALL" ]; then
  download
  from=(--tarball "$work/source.tar.gz" --committed "$SLIPWAY_UPLOADED")
else
  clone
  from=(--repository "$SLIPWAY_REPOSITORY" --commit "$commit" --committed "$(git -C "$tree" show --no-patch --format=%cI HEAD)")
fi

# A program of the platform says how the sources are built, and runs nothing of them. It writes the
# Dockerfile, and the files that this needs, into the context.
context=$work/context plan=$work/plan.json
"$tools/slipway-recipe" --tree "$tree" --config "$SLIPWAY_CONFIG_PATH" --to "$context" --registry "$SLIPWAY_IMAGE_REGISTRY" --other-image "$SLIPWAY_BASE_IMAGE" \
  "${from[@]}" \
  --workspace "$SLIPWAY_WORKSPACE_ID" --deployment "$SLIPWAY_DEPLOYMENT_ID" --revision "$SLIPWAY_REVISION_ID" \
  --install-command "$SLIPWAY_INSTALL_COMMAND" --build-command "$SLIPWAY_BUILD_COMMAND" >"$plan"
get() { jq "$@" "$plan"; }
if [ "$(get '.failure != null')" = true ]; then
  fail "$(get -r .failure.reason)" "$(get -r .failure.message)"
fi
answer SLIPWAY_COMMIT_SHA "$(get -r .commit)"
get -r '.remarks[]?'

# The build command is a stranger's. It runs as a user that can read neither the environment of this
# shell, where the way to the project's role is, nor the docker socket, and gets an environment of
# its own.
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
    chown -R "$SLIPWAY_USER:$SLIPWAY_USER" "$tree" "$work/home" "$work/tmp"
    as=(setpriv --reuid="$SLIPWAY_USER" --regid="$SLIPWAY_USER" --clear-groups --no-new-privs)
    # It has to get into its directory, and to see nothing else there.
    chmod 711 "$dir" "$work"
    chmod 600 "$dir/result" "$log"
  fi
  : >"$log"
  (cd "$tree/$(get -r .dir)" && exec timeout --kill-after=10 "$(left)" "${as[@]}" "${clean[@]}" "${args[@]}") >>"$log" 2>&1 &
  running=$!
  tail -n +1 -s 0.1 -f --pid="$running" "$log" &
  shown=$!
  code=0
  wait "$running" || code=$?
  wait "$shown" || true
  # Processes that the command has started end with it. They could put a link to root's files in
  # place of a file while docker reads the tree.
  [ "${#as[@]}" = 0 ] || "${as[@]}" bash -c 'kill -9 -1' 2>/dev/null || true
  if [ $code != 0 ] && over; then
    fail BUILD_TIMEOUT "the build was stopped after $SLIPWAY_TIMEOUT seconds, while the build command $text was running. $(last_words)"
  elif [ $code -gt 128 ]; then
    fail BUILD_COMMAND_FAILED "the build command $text was killed by signal $((code - 128)). $(last_words)"
  elif [ $code != 0 ]; then
    fail BUILD_COMMAND_FAILED "the build command $text exited with code $code. $(last_words)"
  fi
fi

# If a step of the image fails, the repository is to blame if the step has a reason, and otherwise
# the platform. The classic builder ends as the step has ended, and can bound its memory. Steps run
# as a user without privileges, except the first ones: those that the repository adds, and the
# platform's.
find "$tree" -name .git -prune -exec rm -rf {} +
mv "$tree" "$context/app"
image=$SLIPWAY_IMAGE_REPOSITORY:$SLIPWAY_IMAGE_TAG
: >"$log"
code=0
DOCKER_BUILDKIT=0 timeout --kill-after=10 "$(left)" docker build --memory 2g --memory-swap 2g --tag "$image" --file "$context/Dockerfile" \
  "$context" 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
if [ $code != 0 ]; then
  step=$(sed -n 's|^Step \([0-9]*\)/[0-9]* : .*|\1|p' "$log" | tail -n 1)
  # The output of the step itself.
  awk '{ gsub(/\033\[[0-9;]*m/, "") } /^Step [0-9]+\/[0-9]+ : / { n = 0; next } /^ ---> |^Removing intermediate container |^The command .* returned a non-zero code/ { next } { said[n++] = $0 }
    END { for (i = 0; i < n; i++) print said[i] }' "$log" >"$work/said"
  mv "$work/said" "$log"
  over && fail BUILD_TIMEOUT "the build was stopped after $SLIPWAY_TIMEOUT seconds, while the image was being made. $(last_words)"
  step=".steps[$((${step:-0} - 1))]"
  reason=$(get -r "$step.reason // empty")
  [ -n "$reason" ] || exit 1
  if [ $code = 137 ]; then
    fail OUT_OF_MEMORY "$(get -r "$step.what") was killed, as is done with what uses more memory than a build may. $(last_words)"
  fi
  fail "$reason" "$(get -r "$step.what") exited with code $code. $(last_words)"
fi
export DOCKER_CONFIG=$work/docker
aws ecr get-login-password | docker login --username AWS --password-stdin "${SLIPWAY_IMAGE_REPOSITORY%%/*}"
docker push --quiet "$image"
digest=$(docker image inspect --format '{{json .RepoDigests}}' "$image" | jq -r --arg repository "$SLIPWAY_IMAGE_REPOSITORY@" 'map(select(startswith($repository)))[0] // empty')
[ -n "$digest" ] || { echo 'the registry has named no digest' >&2; exit 1; }
answer SLIPWAY_IMAGE "$digest"
answer SLIPWAY_GRAPHS "$(get -c .graphs)"
answer SLIPWAY_DESCRIPTIONS "$(get -c .descriptions)"
answer SLIPWAY_AUTH "$(get -r .auth)"
answer SLIPWAY_SETTINGS "$(get -c .settings)"
answer SLIPWAY_RECORD "$(get -c .record)"
