package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"perigee/engine"
	"perigee/infra/config"
)

// The claims of a JWT that bind a worker; see engine.Identity. Which claim has
// the role is a setting.
const (
	claimSubject = "sub"
	claimWorkers = "perigee_worker_ids"
	claimTasks   = "perigee_tasks"
)

// identity reads the word of the authorizer that the settings name. Without one
// the caller is left to the API (nil, nil), which asks for a token of its own. A
// caller whom the authorizer knows and who has no role here is refused.
func identity(s *config.Settings, a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) (*engine.Identity, error) {
	switch {
	case a == nil:
	case s.Auth == config.AuthJWT && a.JWT != nil:
		return ofClaims(s, a.JWT.Claims)
	case s.Auth == config.AuthPrincipal && a.IAM != nil && a.IAM.UserARN != "":
		return ofPrincipal(s, a.IAM.UserARN)
	}
	return nil, nil
}

// ofClaims finds a role in the claim: the first of its values that has one by
// the setting auth-roles or, where that is empty, that is one.
func ofClaims(s *config.Settings, claims map[string]string) (*engine.Identity, error) {
	for _, value := range list(claims[s.AuthClaim]) {
		role := s.AuthRoles[value]
		if len(s.AuthRoles) == 0 {
			role = value
		}
		who := engine.Identity{Name: claims[claimSubject], Role: role}
		switch role {
		case engine.RoleAdmin, engine.RoleOperator, engine.RoleReader:
			return &who, nil
		case engine.RoleWorker:
			who.WorkerIDs, who.Tasks = list(claims[claimWorkers]), list(claims[claimTasks])
			return &who, nil
		}
	}
	expected := "admin, operator, reader or worker"
	if len(s.AuthRoles) > 0 {
		expected = "a value that has a role"
	}
	return nil, forbidden("this token has no role here: its claim %q is %q; expected %s. "+
		"AuthClaim (PERIGEE_AUTH_CLAIM) names the claim, AuthRoles (PERIGEE_AUTH_ROLES) maps its values to roles", s.AuthClaim, claims[s.AuthClaim], expected)
}

// ofPrincipal finds the role of a user, of a role or of one session of a role.
func ofPrincipal(s *config.Settings, arn string) (*engine.Identity, error) {
	role, ok := s.AuthRoles[arn]
	if !ok {
		role, ok = ofSession(s.AuthRoles, arn)
	}
	if !ok {
		return nil, forbidden("the principal %s has no role here: give it one with AuthRoles (PERIGEE_AUTH_ROLES), as ARN=ROLE; for a session, the ARN of its role", arn)
	}
	return &engine.Identity{Name: arn, Role: role}, nil
}

// ofSession finds what a role of IAM has, of whom a caller is a session:
// arn:aws:sts::123456789012:assumed-role/NAME/SESSION is somebody with
// arn:aws:iam::123456789012:role/PATH/NAME. A session's ARN says nothing of the
// path; an account has each name once, whatever its path.
func ofSession(roles map[string]string, arn string) (string, bool) {
	session := strings.Split(arn, ":")
	if len(session) != 6 || session[2] != "sts" {
		return "", false
	}
	name, ok := strings.CutPrefix(session[5], "assumed-role/")
	if !ok {
		return "", false
	}
	name, _, _ = strings.Cut(name, "/")
	prefix := "arn:" + session[1] + ":iam::" + session[4] + ":role/"
	if role, ok := roles[prefix+name]; ok {
		return role, true
	}
	for _, key := range slices.Sorted(maps.Keys(roles)) {
		if path, ok := strings.CutPrefix(key, prefix); ok && strings.HasSuffix(path, "/"+name) {
			return roles[key], true
		}
	}
	return "", false
}

func forbidden(format string, args ...any) error {
	return &engine.Error{Code: engine.Forbidden, Message: fmt.Sprintf(format, args...)}
}

// list reads a claim of several values: texts separated by spaces or commas.
// API Gateway hands an array on as "[a b]".
func list(claim string) []string {
	return strings.FieldsFunc(strings.TrimSuffix(strings.TrimPrefix(claim, "["), "]"), func(r rune) bool { return r == ' ' || r == ',' })
}
