"""Looks whether account.py notices what AWS does otherwise than Slipway expects, against stand-ins
for AWS.

Usage: python -m unittest discover -s infra/rehearsal -p '*_test.py'
"""

import base64
import datetime
import unittest

from botocore.exceptions import ClientError

import account
from api import Failed

REPOSITORY = "arn:aws:ecr:us-east-1:000000000000:repository/trial"


class Stand:
    """Stands for all services of an account in which a new role cannot be assumed at once."""

    class exceptions:
        NoSuchEntityException = KeyError

    def __init__(self):
        self.role, self.asked = None, 0

    def __call__(self, service, **keys):
        return self

    def describe_repositories(self, repositoryNames):
        return {"repositories": [{"repositoryArn": REPOSITORY}]}

    def get_caller_identity(self):
        return {"Account": "000000000000"}

    def create_role(self, **properties):
        self.role = properties["RoleName"]
        return {"Role": {"Arn": "arn:aws:iam::000000000000:role/" + self.role}}

    def put_role_policy(self, **properties):
        self.policy = properties["PolicyDocument"]

    def assume_role(self, DurationSeconds, **names):
        self.asked += 1
        if self.asked == 1:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole")
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=DurationSeconds)
        return {"Credentials": {"AccessKeyId": "id", "SecretAccessKey": "key", "SessionToken": "session", "Expiration": until}}

    def get_authorization_token(self):
        return {"authorizationData": [{"authorizationToken": base64.b64encode(b"AWS:word").decode(), "expiresAt": "later"}]}

    def delete_role_policy(self, **names):
        self.policy = None

    def delete_role(self, **names):
        self.role = None


class PushTokens(unittest.TestCase):
    def check(self, after):
        stand, answers, waits = Stand(), [200, after], []
        try:
            account.check_push_token(stand, "registry.example/trial", lambda _: None, lambda *_: answers.pop(0), waits.append)
        finally:
            self.assertEqual((stand.role, stand.policy, answers), (None, None, []))
            self.assertGreater(waits[0], account.SHORTEST)

    def test_a_token_that_ends_with_its_session(self):
        self.check(401)

    def test_a_token_that_outlives_its_session(self):
        with self.assertRaisesRegex(Failed, "outlives its session"):
            self.check(200)


class Scaling:
    """Stands for the services that know how a service with three tasks scales, and have no values
    at first."""

    def __init__(self, tasks):
        self.values, self.asked = [{"busy": [], "tasks": [], "load": []}, {"busy": [], "tasks": tasks, "load": [0.0]}], []

    def __call__(self, service):
        return self

    def describe_scaling_policies(self, ServiceNamespace, ResourceId):
        assert ResourceId == "service/trial/trial-1"
        counted = {"Id": "tasks", "ReturnData": False, "MetricStat": {"Stat": "SampleCount", "Metric": {"MetricName": "CPUUtilization"}}}
        load = {"Id": "load", "ReturnData": True, "Expression": "FILL(busy, 0) / 60 / tasks"}
        ours = {"CustomizedMetricSpecification": {"Metrics": [counted, load]}}
        theirs = {"PredefinedMetricSpecification": {"PredefinedMetricType": "ECSServiceAverageCPUUtilization"}}
        return {"ScalingPolicies": [{"TargetTrackingScalingPolicyConfiguration": c} for c in (theirs, ours)]}

    def get_metric_data(self, MetricDataQueries, StartTime, EndTime):
        self.asked.append(MetricDataQueries)
        return {"MetricDataResults": [{"Id": name, "Values": values} for name, values in self.values.pop(0).items()]}

    def describe_services(self, cluster, services):
        return {"services": [{"runningCount": 3}]}


class TasksOfAService(unittest.TestCase):
    def check(self, *tasks):
        stand = Scaling(list(tasks))

        def wait(ask, is_wanted, patience):
            self.assertFalse(is_wanted(ask()))
            self.assertTrue(is_wanted(answer := ask()))
            return answer

        account.check_scaling(stand, "trial", "trial-1", lambda _: None, wait)
        counted, load = stand.asked[0]
        self.assertEqual((counted["MetricStat"]["Period"], load["Period"], counted["ReturnData"]), (60, 60, True))

    def test_cloudwatch_counts_as_ecs_does(self):
        self.check(3.0, 1.0)
        self.check(1.0, 3.0)  # the newest minute is not over

    def test_cloudwatch_counts_otherwise(self):
        with self.assertRaisesRegex(Failed, "3 tasks run"):
            self.check(9.0, 9.0, 3.0)


if __name__ == "__main__":
    unittest.main()
