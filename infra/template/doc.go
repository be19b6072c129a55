// Package template holds the rules of our own for template.yaml: what SAM,
// cfn-lint and checkov let through, and what holds for Perigee alone, such as
// that the functions together never ask for more connections than the database
// takes, or that each alarm has its section in docs/runbook.md.
//
// The rules read the template as it is written, before SAM expands it, so they
// need neither SAM nor an account and run with the other tests. mutations.yaml
// lists mistakes that they, or the other tools, must find; `make
// validate-template` (validate, check.py) runs all of them.
//
// Start reading at rules in rules.go.
package template
