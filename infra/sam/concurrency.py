"""Compares the concurrency that an environment reserves with what Lambda lets an account reserve:
all but 100 of its quota."""

import policies
import quotas

KEPT = 100  # Lambda keeps them for functions that reserve nothing


def check(translated, parameters):
    """Returns a sentence if functions reserve, or keep ready without a reservation, more than the
    account's quota (ConcurrencyQuota) allows."""
    names = policies.names_of(translated, parameters)
    reserved = 0
    for name, resource in translated["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Function":
            aliases = (r for r in translated["Resources"].values() if r["Type"] == "AWS::Lambda::Alias" and r["Properties"]["FunctionName"] == {"Ref": name})
            ready = ({"ProvisionedConcurrentExecutions": 0} | (value(alias["Properties"].get("ProvisionedConcurrencyConfig"), translated, names) or {}) for alias in aliases)
            own = value(resource["Properties"].get("ReservedConcurrentExecutions"), translated, names)
            reserved += int(own or 0) or sum(int(config["ProvisionedConcurrentExecutions"]) for config in ready)
    quota = int(names["ConcurrencyQuota"])
    if reserved and reserved > quota - KEPT:
        return [f"{reserved} concurrent executions are reserved, more than the quota {quota} without the {KEPT} that Lambda keeps"]
    return []


def value(expression, translated, names):
    """Returns what an expression stands for, or None if its condition leaves it out."""
    decided = policies.decide(expression, translated, names)
    return None if decided in (None, {"Ref": "AWS::NoValue"}) else quotas.resolve(decided, names)
