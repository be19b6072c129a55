// Package outbound makes calls to addresses that others name: definitions with
// http.request, and whatever calls out later. A server stands where its users
// do not, so every address is checked when it is connected to, after names are
// resolved and on every redirect, and what is private is refused unless it is
// allowed by configuration.
//
// It knows no workflow; what it is given and gives back is the input and output
// of the task http.request. Start reading at Client.
package outbound
