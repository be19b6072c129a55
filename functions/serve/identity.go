package serve

import (
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

// identity reads the word of the authorizer that the settings name. Without a
// role the caller is left to the API, which asks for a token of its own.
func identity(s *config.Settings, a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) (engine.Identity, bool) {
	switch {
	case a == nil:
	case s.Auth == config.AuthJWT && a.JWT != nil:
		return ofClaims(s, a.JWT.Claims)
	case s.Auth == config.AuthPrincipal && a.IAM != nil:
		return ofPrincipal(s, a.IAM.UserARN)
	}
	return engine.Identity{}, false
}

// ofClaims finds a role in the claim: the first of its values that has one by
// the setting auth-roles or, where that is empty, that is one.
func ofClaims(s *config.Settings, claims map[string]string) (engine.Identity, bool) {
	for _, value := range list(claims[s.AuthClaim]) {
		role := s.AuthRoles[value]
		if len(s.AuthRoles) == 0 {
			role = value
		}
		who := engine.Identity{Name: claims[claimSubject], Role: role}
		switch role {
		case engine.RoleAdmin, engine.RoleOperator, engine.RoleReader:
			return who, true
		case engine.RoleWorker:
			who.WorkerIDs, who.Tasks = list(claims[claimWorkers]), list(claims[claimTasks])
			return who, true
		}
	}
	return engine.Identity{}, false
}

// ofPrincipal finds the role of a user, of a role or of one session of a role:
// arn:aws:sts::123456789012:assumed-role/NAME/SESSION is somebody with
// arn:aws:iam::123456789012:role/NAME.
func ofPrincipal(s *config.Settings, arn string) (engine.Identity, bool) {
	role, ok := s.AuthRoles[arn]
	if parts := strings.Split(arn, ":"); !ok && len(parts) == 6 && parts[2] == "sts" {
		if name, assumed := strings.CutPrefix(parts[5], "assumed-role/"); assumed {
			name, _, _ = strings.Cut(name, "/")
			role, ok = s.AuthRoles["arn:"+parts[1]+":iam::"+parts[4]+":role/"+name]
		}
	}
	return engine.Identity{Name: arn, Role: role}, ok
}

// list reads a claim of several values: texts separated by spaces or commas.
// API Gateway hands an array on as "[a b]".
func list(claim string) []string {
	return strings.FieldsFunc(strings.TrimSuffix(strings.TrimPrefix(claim, "["), "]"), func(r rune) bool { return r == ' ' || r == ',' })
}
