// Package lambdahttp lets a net/http handler answer the calls that an HTTP API
// of API Gateway (payload format 2.0) makes to a Lambda function.
//
// The conversion is aws-lambda-go-api-proxy's ProxyWithContext. Its other way
// in, Proxy, puts the authorizer's word into a header, where a caller may put
// their own. Around it stands what it gets wrong, one short function for each
// fault, each with a test: paths and queries that it parses a second time,
// headers that it splits, an answer that was never written or written twice,
// panics, which end the sandbox, and answers that outgrow Lambda's limit.
//
// The package knows no route and no engine. Start reading at Handler.
package lambdahttp
