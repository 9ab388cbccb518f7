#!/bin/sh
# Installs the SAM CLI into .tools/sam and the image that it emulates Lambda with: setup.sh. Needs
# Python 3, and a Docker engine for the image. The image is pulled; where no registry can be reached
# it is made of busybox, since the runtime's own part comes with the SAM CLI.
set -eu
cd "$(dirname "$0")/../../../.."
sh infra/sam/setup.sh
exec 9>.tools/sam-image.lock
flock 9 # stacks that start together make one image

image=public.ecr.aws/lambda/provided:al2023
case $(uname -m) in
aarch64 | arm64) native=$image-arm64 platform=linux/arm64 ;;
*) native=$image-x86_64 platform=linux/amd64 ;;
esac
if docker image inspect "$image" "$native" >/dev/null 2>&1; then exit 0; fi
if timeout 120 docker pull --quiet --platform "$platform" "$native" >/dev/null 2>&1; then
	docker tag "$native" "$image"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
busybox=$(command -v busybox || true)
if [ -z "$busybox" ] || ! "$busybox" --list >/dev/null || ldd "$busybox" >/dev/null 2>&1; then # it must be static
	(cd "$dir" && apt-get -qq -o APT::Sandbox::User=root download busybox-static && dpkg -x busybox-static_*.deb .)
	busybox=$dir/bin/busybox
fi
mkdir "$dir/context"
cp "$busybox" "$dir/context/busybox"
cp /etc/ssl/certs/ca-certificates.crt "$dir/context/ca.crt"
cat >"$dir/context/Dockerfile" <<'DOCKERFILE'
FROM scratch
COPY busybox /bin/busybox
COPY ca.crt /etc/ssl/certs/ca-certificates.crt
RUN ["/bin/busybox", "--install", "-s", "/bin"]
RUN mkdir -p /tmp /var/task /var/runtime /opt /var/rapid && chmod 1777 /tmp
ENV PATH=/bin LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime
WORKDIR /var/task
DOCKERFILE
DOCKER_BUILDKIT=0 docker build --quiet --tag "$native" --tag "$image" "$dir/context" >/dev/null
