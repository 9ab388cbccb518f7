#!/bin/sh
# Fetches DynamoDB Local with Maven into .tools/dynamodb-local, unless it is there. Needs Java 17
# and Maven.
set -eu
cd "$(dirname "$0")/../../../.."
folder=$PWD/.tools/dynamodb-local version=3.1.0
[ -d "$folder/$version" ] && exit 0

command -v mvn >/dev/null || { echo "setup.sh: mvn is not installed" >&2; exit 1; }
mkdir -p "$folder"
fetched=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$fetched"' EXIT
cat >"$fetched/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>run.slipway</groupId><artifactId>dynamodb-local</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>software.amazon.dynamodb</groupId><artifactId>DynamoDBLocal</artifactId><version>$version</version>
  </dependency></dependencies>
</project>
POM
mvn -q -B -f "$fetched/pom.xml" dependency:copy-dependencies -DoutputDirectory=libs >&2
[ -d "$folder/$version" ] || mv "$fetched/libs" "$folder/$version" # another run may have been faster
