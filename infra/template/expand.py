"""Expands a SAM template as a deployment would: with SAM's own translator.

cfn-lint and checkov do not see through the transform; what they are given must
be what CloudFormation gets. No credentials are needed and nothing is called.
"""

import os

os.environ.setdefault("SAM_CLI_TELEMETRY", "0")
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

from samcli.commands.validate.lib.exceptions import InvalidSamDocumentException  # noqa: E402
from samcli.lib.translate.sam_template_validator import SamTemplateValidator  # noqa: E402
from samcli.yamlhelper import yaml_parse  # noqa: E402


class NoManagedPolicies:
    """Stands in for the loader that would ask IAM for its managed policies."""

    def load(self):
        return {}


def expand(text: str) -> str:
    """Returns the expanded template as YAML. Raises ValueError with what SAM says."""
    try:
        return SamTemplateValidator(
            yaml_parse(text), NoManagedPolicies(), region=os.environ["AWS_DEFAULT_REGION"]
        ).get_translated_template_if_valid()
    except InvalidSamDocumentException as error:
        raise ValueError(str(error)) from error
