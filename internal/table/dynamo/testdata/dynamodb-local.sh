#!/bin/sh
# Serves DynamoDB Local, in memory, on a port until standard input ends: dynamodb-local.sh <folder> <port>
# It is fetched into the folder with Maven when it is not there yet. Its licence allows use with an AWS account but no
# redistribution, so it is never committed. Needs Java 17.
set -eu
folder=$1 port=$2 version=3.1.0
libs=$folder/$version

need() { command -v "$1" >/dev/null || { echo "dynamodb-local.sh: $1 is not installed" >&2; exit 1; }; }

need java
if [ ! -d "$libs" ]; then
	need mvn
	mkdir -p "$folder"
	fetched=$(mktemp -d "$folder/fetch.XXXXXX")
	trap 'rm -rf "$fetched"' EXIT
	cat >"$fetched/pom.xml" <<-POM
		<project xmlns="http://maven.apache.org/POM/4.0.0">
		  <modelVersion>4.0.0</modelVersion>
		  <groupId>run.slipway</groupId><artifactId>dynamodb-local</artifactId><version>1</version>
		  <dependencies><dependency>
		    <groupId>software.amazon.dynamodb</groupId><artifactId>DynamoDBLocal</artifactId><version>$version</version>
		  </dependency></dependencies>
		</project>
	POM
	mvn -q -B -f "$fetched/pom.xml" dependency:copy-dependencies -DoutputDirectory=libs >&2
	[ -d "$libs" ] || mv "$fetched/libs" "$libs" # another run may have been faster
	rm -rf "$fetched"
fi

java -Djava.library.path="$libs" -cp "$libs/*" software.amazon.dynamodb.services.local.main.ServerRunner \
	-inMemory -sharedDb -disableTelemetry -port "$port" >&2 </dev/null &
server=$!
trap 'kill $server; wait $server || true' EXIT
cat >/dev/null
