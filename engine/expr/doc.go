// Package expr compiles and evaluates the expressions and templates of a
// definition: CEL with JSON's single kind of number.
//
// It knows JSON values and the names in scope; it knows nothing of steps'
// rules, of histories or of time (the moment comes in as a variable). A
// program is compiled on its first use and safe for concurrent use after that.
//
// Start reading at Scope, Program and Vars; value.go says how JSON enters an
// evaluation, operators.go and plan.go what is different from CEL.
package expr
