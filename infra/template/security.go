package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func contains(names []string, name string) bool { return slices.Contains(names, name) }

func format(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

// everywhere are the policies whose actions know no narrower resource: those of
// network interfaces, and those within the policy of the key itself.
var everywhere = []string{"NetworkPolicy", "Key"}

func permissions(t *Template, _ Surroundings) (faults []string) {
	for _, r := range t.resources("") {
		walk(r.all["Properties"], nil, func(_ []string, v any) {
			statement := object(v)
			if statement["Effect"] != "Allow" {
				return
			}
			for _, action := range texts(statement["Action"]) {
				// The account's own statement in a key's policy gives the key to IAM.
				if strings.HasSuffix(action, ":*") && r.name != "Key" || action == "*" {
					faults = append(faults, r.fault("the action %s is more than one thing needs", action))
				}
			}
			if contains(texts(statement["Resource"]), "*") && !contains(everywhere, r.name) {
				faults = append(faults, r.fault("%v is allowed on every resource", statement["Action"]))
			}
		})
		if r.kind == "AWS::Lambda::Permission" && r.get("SourceArn") == nil {
			faults = append(faults, r.fault("without SourceArn every API of every account may call"))
		}
	}
	for _, r := range t.resources(function) {
		if r.get("Role") == nil {
			faults = append(faults, r.fault("needs a Role: the one that SAM makes may write to every log group"))
		}
	}
	return faults
}

// texts are the texts of a value that is one, or a list of them.
func texts(value any) (all []string) {
	if s, ok := value.(string); ok {
		return []string{s}
	}
	for _, element := range list(value) {
		if s, ok := element.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// public are the routes that everybody may call; functions/httpapi serves them
// without a token, too.
var public = []string{"GET /", "GET /docs", "GET /healthz", "GET /readyz", "GET /v1/openapi.yaml"}

func routes(t *Template, _ Surroundings) (faults []string) {
	var seen []string
	for _, r := range t.resources("AWS::ApiGatewayV2::Route") {
		key := text(r.get("RouteKey"))
		seen = append(seen, key)
		want := "[JWT AWS_IAM NONE]" // by parameter
		if contains(public, key) {
			want = "[NONE]"
		}
		if got := fmt.Sprint(choices(r.get("AuthorizationType"))); got != want {
			faults = append(faults, r.fault("%s must be authorized by %s, is by %s", key, want, got))
		}
		if want != "[NONE]" && !contains(references(r.get("AuthorizerId")), "JwtAuthorizer") {
			faults = append(faults, r.fault("%s names no authorizer for JWT", key))
		}
	}
	for _, key := range append([]string{"$default", "POST /v1/workers/{proxy+}", "POST /v1/tasks/{proxy+}"}, public...) {
		if !contains(seen, key) {
			faults = append(faults, "Resources: there is no route "+key)
		}
	}
	return faults
}

// kept are the kinds that hold data, and how each is kept when it goes.
var kept = map[string]struct{ deletion, replacement string }{
	"AWS::RDS::DBCluster":      {"Snapshot", "Snapshot"},
	"AWS::DSQL::Cluster":       {"RetainExceptOnCreate", "Retain"},
	"AWS::Backup::BackupVault": {"RetainExceptOnCreate", "Retain"},
	"AWS::KMS::Key":            {"RetainExceptOnCreate", "Retain"},
}

func data(t *Template, _ Surroundings) (faults []string) {
	for _, r := range t.resources("") {
		if want, ok := kept[r.kind]; ok && (r.all["DeletionPolicy"] != want.deletion || r.all["UpdateReplacePolicy"] != want.replacement) {
			faults = append(faults, r.fault("must have DeletionPolicy %s and UpdateReplacePolicy %s", want.deletion, want.replacement))
		}
		switch r.kind {
		case "AWS::RDS::DBCluster":
			if text(r.get("DeletionProtection"), "Ref") != "DeletionProtection" || r.get("StorageEncrypted") != true || r.get("KmsKeyId") == nil {
				faults = append(faults, r.fault("must be encrypted with the key, and protected from deletion"))
			}
			if r.get("BackupRetentionPeriod") == nil {
				faults = append(faults, r.fault("keeps backups for one day only"))
			}
			if r.get("DBClusterIdentifier") != nil {
				faults = append(faults, r.fault("a name of its own forbids to restore a snapshot beside it"))
			}
		case "AWS::DSQL::Cluster":
			if text(r.get("DeletionProtectionEnabled"), "Ref") != "DeletionProtection" || r.get("KmsEncryptionKey") == nil {
				faults = append(faults, r.fault("must be encrypted with the key, and protected from deletion"))
			}
		}
	}
	if at(t.root, "Parameters", "DeletionProtection", "Default") != "true" {
		faults = append(faults, "Parameters: DeletionProtection must be \"true\" unless somebody says otherwise")
	}
	return faults
}
