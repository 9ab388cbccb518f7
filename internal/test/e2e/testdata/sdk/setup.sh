#!/bin/sh
# Installs the client SDKs that the tests with the build tag sdk drive the server with, into
# .tools/sdk. Needs Python 3 and Node.
set -eu
cd "$(dirname "$0")/../../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/sdk/installed wanted=$(cat internal/test/e2e/testdata/sdk/setup.sh | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
mkdir -p .tools/sdk/js .tools/sdk/js-early .tools/sdk/js-threads .tools/sdk/js-hooks .tools/sdk/js-svelte .tools/sdk/js-adapter .tools/sdk/js-assistant .tools/sdk/js-inbox .tools/sdk/js-agents .tools/sdk/js-proxy
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/sdk/python/bin/python ] || "$uv" venv --quiet --python python3 .tools/sdk/python
"$uv" pip install --quiet --compile-bytecode --python .tools/sdk/python 'langgraph-sdk==0.4.14' 'langgraph==1.2.24' 'a2a-sdk==1.3.0'
npm install --prefix .tools/sdk/js --silent --no-audit --no-fund --save-exact \
  '@langchain/langgraph-sdk@2.0.0' '@langchain/core@1.2.13' 'react@19.3.1' 'react-dom@19.3.1' 'jsdom@26.1.0'
# A release from before the hook could do without the whole history.
npm install --prefix .tools/sdk/js-early --silent --no-audit --no-fund --save-exact \
  '@langchain/langgraph-sdk@0.0.112' '@langchain/core@0.3.80' 'react@19.3.1' 'react-dom@19.3.1' 'jsdom@26.1.0'
[ -x .tools/sdk/python-older/bin/python ] || "$uv" venv --quiet --python python3 .tools/sdk/python-older
"$uv" pip install --quiet --compile-bytecode --python .tools/sdk/python-older 'langgraph-sdk==0.4.3' 'langgraph==1.2.12' 'a2a-sdk==0.3.26'
# The newest release by number is older code: the release before it has the thread-centric protocol.
# Node has no WebSocket that takes headers.
npm install --prefix .tools/sdk/js-threads --silent --no-audit --no-fund --save-exact \
  '@langchain/langgraph-sdk@1.15.0' '@langchain/langgraph@1.7.3' '@langchain/core@1.4.0' 'react@19.3.1' 'react-dom@19.3.1' 'jsdom@26.1.0' 'ws@8.23.0'
# The hooks bring an older release of the SDK along.
npm install --prefix .tools/sdk/js-hooks --silent --no-audit --no-fund --save-exact \
  '@langchain/react@1.1.0' '@langchain/langgraph-sdk@1.11.0' '@langchain/langgraph@1.4.18' '@langchain/core@1.4.0' 'react@19.3.1' 'react-dom@19.3.1' 'jsdom@26.1.0' 'ws@8.23.0'
# The hook for Svelte, which has to be compiled, brings a still older release along.
npm install --prefix .tools/sdk/js-svelte --silent --no-audit --no-fund --save-exact \
  '@langchain/svelte@1.0.29' '@langchain/langgraph-sdk@1.9.28' '@langchain/core@1.4.0' 'svelte@5.57.3' 'esbuild@0.25.12' 'jsdom@26.1.0' 'ws@8.23.0'
# The adapter takes any newer release of these packages, so they are named.
npm install --prefix .tools/sdk/js-adapter --silent --no-audit --no-fund --save-exact \
  '@ag-ui/langgraph@0.0.43' '@ag-ui/client@1.0.0' '@ag-ui/core@1.0.0' '@langchain/langgraph-sdk@1.15.0' '@langchain/core@1.4.0'
# So do these components.
npm install --prefix .tools/sdk/js-assistant --silent --no-audit --no-fund --save-exact \
  '@assistant-ui/react@0.15.22' '@assistant-ui/react-langgraph@0.14.25' '@assistant-ui/react-langchain@0.0.28' '@assistant-ui/core@0.3.35' '@assistant-ui/store@0.3.23' \
  '@assistant-ui/tap@0.9.25' 'assistant-stream@0.3.57' 'assistant-cloud@0.2.11' \
  '@langchain/langgraph-sdk@1.15.0' '@langchain/core@1.4.0' 'react@19.3.1' 'react-dom@19.3.1' 'jsdom@26.1.0'
# These are in the lock file of Agent Inbox.
npm install --prefix .tools/sdk/js-inbox --silent --no-audit --no-fund --save-exact '@langchain/langgraph-sdk@1.9.28' '@langchain/core@1.2.4'
npm install --prefix .tools/sdk/js-agents --silent --no-audit --no-fund --save-exact \
  '@a2a-js/sdk@1.3.0' 'a2a-js-sdk-v0@npm:@a2a-js/sdk@0.3.14'
# The script stands in for the web framework, which is large.
npm install --prefix .tools/sdk/js-proxy --silent --no-audit --no-fund --save-exact --omit=peer 'langgraph-nextjs-api-passthrough@0.1.4'
echo "$wanted" >$stamp
