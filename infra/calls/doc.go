// Package calls gives an engine the means to call others, as the settings
// switch them on: the built-in task http.request, and pushes to workers. The
// local server and the functions share it.
package calls
