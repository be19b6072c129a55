"""Lints template.yaml as it would be deployed, and shows that the checks bite.

The template is expanded with SAM's own translator. cfn-lint, of which a warning
fails, looks at all branches of all conditions; checkov looks at what parameters
select, so it is given each deployment of deployments.yaml. Then the mistakes of
mutations.yaml are made in a copy, and each must be found there.

The rules of our own, for what all of these let through, are in rules.go.
"""

import json
import logging
import pathlib
import subprocess
import sys
import tempfile

import yaml
from cfnlint.api import lint
from cfnlint.config import ManualArgs

import expand

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
REGION = "us-east-1"

# The translator warns that it does not send its metrics; it is not meant to.
logging.getLogger("samtranslator.metrics.metrics").setLevel(logging.ERROR)


class Report:
    """Prints each check as it ends, and counts the faults."""

    def __init__(self):
        self.faults = 0

    def check(self, what: str, faults: list[str]):
        print("FAIL" if faults else "ok  ", what, flush=True)
        for fault in dict.fromkeys(faults):
            print("       ", fault, flush=True)
        self.faults += len(faults)

    def caught(self, mutation: dict, found: list[str]):
        faults = []
        if not any(mutation["says"] in fault for fault in found):
            faults = [f"expected a fault with {mutation['says']!r}, got:", *(found or ["none"])]
        self.check(f"{mutation['caught_by']} catches: {mutation['name']}", faults)


def deployed(expanded: str, parameters: dict) -> str:
    """Returns the template with these parameters as its defaults."""
    template = expand.yaml_parse(expanded)
    for name, value in parameters.items():
        template["Parameters"][name]["Default"] = value
    return json.dumps(template, indent=1)


def cfn_lint(text: str) -> list[str]:
    matches = lint(text, config=ManualArgs(regions=[REGION]))
    return [f"{m.rule.id} {m.message} ({'/'.join(map(str, m.path))})" for m in matches]


def checkov(texts: dict[str, str]) -> dict[str, list[str]]:
    """Runs checkov once over all texts, since most of its time is its start."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            pathlib.Path(folder, name + ".json").write_text(text)
        run = subprocess.run(
            [sys.executable, "-m", "checkov.main", "--directory", folder, "--framework", "cloudformation"]
            + ["--skip-download", "--compact", "--quiet", "--output", "json"],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        answer = json.loads(run.stdout)
        summary, failed = answer["summary"], answer["results"]["failed_checks"]
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"checkov gave no results:\n{run.stdout[-2000:]}{run.stderr[-2000:]}") from None
    if summary["parsing_errors"] or not summary["passed"]:
        raise SystemExit(f"checkov could not read what it was given: {summary}")
    found = {name: [] for name in texts}
    for check in failed:
        name = pathlib.Path(check["file_path"]).stem
        found[name].append(f"{check['check_id']} {check['check_name']} ({check['resource']})")
    return found


def unselected(template: dict, deployments: dict) -> list[str]:
    """Names the conditions that no deployment makes true: checkov would not see what they select."""
    conditions = template["Conditions"]
    defaults = {name: str(p["Default"]) for name, p in template["Parameters"].items()}
    never = set(conditions)
    for parameters in deployments.values():
        never = {c for c in never if not holds(conditions, defaults | parameters, conditions[c])}
    return [f"no deployment of deployments.yaml makes the condition {name} true" for name in sorted(never)]


def holds(conditions: dict, parameters: dict, expression: dict) -> bool:
    """Evaluates a condition, as far as template.yaml uses conditions."""
    ((function, operand),) = expression.items()
    match function:
        case "Condition":
            return holds(conditions, parameters, conditions[operand])
        case "Fn::Equals":
            left, right = (value(parameters, v) for v in operand)
            return left == right
        case "Fn::Not":
            return not holds(conditions, parameters, operand[0])
        case "Fn::And":
            return all(holds(conditions, parameters, v) for v in operand)
        case "Fn::Or":
            return any(holds(conditions, parameters, v) for v in operand)
    raise ValueError(f"the function {function} of conditions is not known to check.py")


def value(parameters: dict, operand) -> str:
    """Returns a parameter, a list of one joined without anything between, or a plain value."""
    match operand:
        case {"Ref": name}:
            return parameters[name]
        case {"Fn::Join": ["", {"Ref": name}]}:
            return parameters[name].replace(",", "")
        case dict():
            raise ValueError(f"the operand {operand} of conditions is not known to check.py")
    return str(operand)


def mutate(source: str, mutations: list[dict]) -> str:
    """Makes mistakes in a copy of the template."""
    for mutation in mutations:
        if mutation["replace"] not in source:
            raise SystemExit(f"mutations.yaml: {mutation['name']}: template.yaml has no {mutation['replace']!r}")
        source = source.replace(mutation["replace"], mutation["with"])
    return source


def sam_says(source: str) -> list[str]:
    try:
        expand.expand(source)
    except ValueError as error:
        return [str(error)]
    return []


def main():
    source = (ROOT / "template.yaml").read_text()
    deployments = yaml.safe_load((HERE / "deployments.yaml").read_text())
    mutations = yaml.safe_load((HERE / "mutations.yaml").read_text())
    by = {tool: [m for m in mutations if m["caught_by"] == tool] for tool in ("sam", "cfn-lint", "checkov")}
    first, *_ = deployments.values()
    report = Report()

    report.check("sam translates template.yaml", sam_says(source))
    for mutation in by["sam"]:
        report.caught(mutation, sam_says(mutate(source, [mutation])))

    expanded = expand.expand(source)
    report.check("cfn-lint", cfn_lint(deployed(expanded, first)))
    found = cfn_lint(deployed(expand.expand(mutate(source, by["cfn-lint"])), first))
    for mutation in by["cfn-lint"]:
        report.caught(mutation, found)

    report.check("deployments.yaml selects everything", unselected(expand.yaml_parse(expanded), deployments))
    texts = {name: deployed(expanded, parameters) for name, parameters in deployments.items()}
    wrong = deployed(expand.expand(mutate(source, by["checkov"])), first)
    found = checkov(texts | {"mutations": wrong})
    for name in texts:
        report.check(f"checkov, {name}", found[name])
    for mutation in by["checkov"]:
        report.caught(mutation, found["mutations"])

    if report.faults:
        raise SystemExit(f"template.yaml: {report.faults} faults")


if __name__ == "__main__":
    main()
