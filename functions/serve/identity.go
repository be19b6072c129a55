package serve

import (
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"perigee/engine"
)

// The claims of a JWT that say who calls. Lists are texts, separated by spaces:
// API Gateway hands arrays on as "[a b]".
const (
	claimRole    = "perigee_role"
	claimWorkers = "perigee_worker_ids"
	claimTasks   = "perigee_tasks"
	claimSubject = "sub"
)

// identity reads the word of a JWT authorizer. A token without a role is left
// to the API, which takes it for one of its own and refuses it.
func identity(a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) (engine.Identity, bool) {
	if a == nil || a.JWT == nil {
		return engine.Identity{}, false
	}
	claims := a.JWT.Claims
	role := claims[claimRole]
	switch role {
	case engine.RoleAdmin, engine.RoleOperator, engine.RoleReader, engine.RoleWorker:
	default:
		return engine.Identity{}, false
	}
	who := engine.Identity{Name: claims[claimSubject], Role: role}
	if role == engine.RoleWorker {
		who.WorkerIDs, who.Tasks = list(claims[claimWorkers]), list(claims[claimTasks])
	}
	return who, true
}

func list(claim string) []string {
	return strings.Fields(strings.TrimSuffix(strings.TrimPrefix(claim, "["), "]"))
}
