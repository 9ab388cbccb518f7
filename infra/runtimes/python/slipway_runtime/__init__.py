"""Hosts the graphs that framework.json names and speaks Slipway's container contract.

An invocation carries everything a graph needs, its checkpoints included, and everything the graph
makes of it leaves in the answer's events: the process keeps nothing between two invocations.

    config      reads framework.json
    framework   what the framework's releases differ in
    loader      turns "path/to/file.py:variable" into a graph, or into one sentence about what is
                wrong
    imports     says which installed module an error comes from
    invocation  the JSON forms of the contract
    checkpointer  a checkpointer of the framework's own interface that lives for one invocation
    recorder    makes `checkpoint` and `writes` events of what the checkpointer is given
    run         the operations run and update_state
    describe    the operation describe
    store       the framework's store over the agent server's own
    bridge      the two event loops: one serves HTTP, the other runs graphs
    server      the HTTP interface
"""

import warnings

from .imports import explain_framework

explain_framework()

import langchain_core  # noqa: F401 (which shows its deprecations from then on)

# The framework's own releases before 1.0 call it so.
warnings.filterwarnings("ignore", message=".*`allowed_objects`.*")
