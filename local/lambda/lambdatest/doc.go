// Package lambdatest builds functions for tests and measurements, as `make
// lambda` builds them to be deployed.
package lambdatest
