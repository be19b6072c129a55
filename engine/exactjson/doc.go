// Package exactjson holds JSON as text and moves it token for token: the digits
// of a number and the order of an object's keys are what their author wrote.
//
// A durable history must give back what it was given. encoding/json's usual
// path through map[string]any and float64 does not: it rounds large integers,
// loses the key order and accepts duplicate keys. Here a value is checked once,
// on the way in (Parse), and from then on it is an immutable string that can be
// shared, compared, stored and sent without being decoded again.
//
// The package knows nothing about workflows. Start reading at Value and Parse.
package exactjson
