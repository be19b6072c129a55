// Package cloud calls AWS: secrets, tokens for the database, and the schedule
// of the next wake-up. Each client is made when it is first used.
//
// Credentials and region are those that Lambda puts into the environment: the
// SDK's search for them along files and metadata services would cost megabytes
// and milliseconds of every start. AWS_ENDPOINT_URL names another server, as
// for the SDK, for tests and for stand-ins of AWS.
//
// Start reading at Cloud.
package cloud
