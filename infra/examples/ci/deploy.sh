#!/usr/bin/env bash
# Deploys an agent from a git repository, waits until the revision is served, and asks the agent one
# question.
#
#   SLIPWAY_URL, SLIPWAY_API_KEY, SLIPWAY_TENANT_ID   where the control plane is, and who asks
#   deploy.sh NAME REPO_URL REF [CONFIG_PATH]         REF: a branch, or a tag as refs/tags/...
#
# A deployment of that name is created, or gets a new revision. The agent's URL goes to stdout,
# progress to stderr. The exit code is 0 when the revision is served and answers, 1 when not, 2 when
# something is missing.
set -euo pipefail

if [ $# -lt 3 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
name=$1 repo=$2 ref=$3 config=${4:-framework.json}
for variable in SLIPWAY_URL SLIPWAY_API_KEY SLIPWAY_TENANT_ID; do
  if [ -z "${!variable:-}" ]; then
    echo "set $variable" >&2
    exit 2
  fi
done
patience=${SLIPWAY_PATIENCE:-1800} pause=${SLIPWAY_PAUSE:-5}

# call prints the answer, or the server's reason on stderr if there is no good answer. curl writes
# the answer to a file, because it begins a file again when it repeats the request. The key goes
# through a file descriptor, so that no list of processes shows it.
body=$(mktemp)
trap 'rm -f "$body"' EXIT
call() {
  local method=$1 address=$2 status=0
  shift 2
  : >"$body"
  curl --silent --show-error --fail-with-body --retry 4 --retry-connrefused --max-time 60 --request "$method" \
    --header @<(printf 'X-Api-Key: %s\nX-Tenant-Id: %s\nContent-Type: application/json\n' "$SLIPWAY_API_KEY" "$SLIPWAY_TENANT_ID") \
    --output "$body" "$@" "$address" || status=$?
  if [ $status -ne 0 ]; then
    printf '%s\n' "$(cat "$body")" >&2
    return 1
  fi
  cat "$body"
}

# change is a call that has one effect, however often curl repeats it because its answer was lost.
change() { call "$@" --header "Idempotency-Key: deploy-$(date +%s)-$$-$RANDOM"; }

# find prints the id of the deployment with the name, or nothing.
find() {
  local offset=0 page id
  while :; do
    page=$(call GET "$SLIPWAY_URL/v2/deployments?limit=100&offset=$offset&name_contains=$name") || return
    id=$(jq -r --arg name "$name" '.resources[] | select(.name == $name) | .id' <<<"$page")
    if [ -n "$id" ] || [ "$(jq '.resources | length' <<<"$page")" -lt 100 ]; then
      printf '%s' "$id"
      return
    fi
    offset=$(jq .offset <<<"$page")
  done
}

revision_config=$(jq -n --arg ref "$ref" --arg config "$config" '{repo_ref: $ref, framework_config_path: $config}')
id=$(find)
if [ -z "$id" ]; then
  deployment=$(jq -n --arg name "$name" --arg repo "$repo" --argjson revision "$revision_config" '{
    name: $name, source: "github", source_config: {repo_url: $repo, deployment_type: "dev", build_on_push: false},
    source_revision_config: $revision, secrets: []}' | change POST "$SLIPWAY_URL/v2/deployments" --data @-)
else
  deployment=$(jq -n --argjson revision "$revision_config" '{source_revision_config: $revision}' |
    change PATCH "$SLIPWAY_URL/v2/deployments/$id" --data @-)
fi
id=$(jq -r .id <<<"$deployment")
revision=$(jq -r .latest_revision_id <<<"$deployment")
echo "deployment $id, revision $revision" >&2

seen=
until [ $SECONDS -ge "$patience" ]; do
  state=$(call GET "$SLIPWAY_URL/v2/deployments/$id/revisions/$revision")
  status=$(jq -r .status <<<"$state")
  [ "$status" = "$seen" ] || echo "$status" >&2
  seen=$status
  case $status in
  DEPLOYED) break ;;
  *FAILED* | SKIPPED | INTERRUPTED)
    jq -r '"\(.status_reason // "no reason"): \(.status_message // "no message")"' <<<"$state" >&2
    exit 1
    ;;
  esac
  sleep "$pause"
done
if [ "$seen" != DEPLOYED ]; then
  echo "not served after $patience s" >&2
  exit 1
fi

# The smoke test: one run on a new thread, whose final values must hold an answer.
agent=$(call GET "$SLIPWAY_URL/v2/deployments/$id" | jq -r .source_config.custom_url)
thread=$(call POST "$agent/threads" --data '{}' | jq -r .thread_id)
values=$(jq -n --arg graph "${SLIPWAY_GRAPH:-agent}" --arg question "${SLIPWAY_QUESTION:-hello}" \
  '{assistant_id: $graph, input: {messages: [{role: "user", content: $question}]}}' |
  call POST "$agent/threads/$thread/runs/wait" --max-time 600 --data @-)
if ! jq -e '.__error__ == null and (.messages | last | .type == "ai")' <<<"$values" >/dev/null; then
  jq -c '.__error__ // .' <<<"$values" >&2
  exit 1
fi
printf '%s\n' "$agent"
