// Package database opens the Postgres of functions: with the password of the
// URL, with one from Secrets Manager that may change while the function runs,
// or with tokens of IAM, which are made anew for each connection; and with the
// authorities that the server's certificate is checked against.
//
// Nothing happens before a connection is needed. Start reading at Open.
package database
