"""Looks whether account.py tells a token that ends with its session from one that does not, against a stand-in for AWS.

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

    class exceptions:  # noqa: N801 - as boto3 names it
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
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=DurationSeconds)
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


if __name__ == "__main__":
    unittest.main()
