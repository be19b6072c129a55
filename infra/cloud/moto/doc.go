// Package moto gives tests a stand-in for AWS: moto's server, a process of the
// test's own on a free port, installed by .ci/moto. Where it is not installed a
// test fails and says so; it never skips.
package moto
