// Command perigee is Perigee on one machine: a server for development, and the
// command line of any server. `perigee help` lists what it can do.
package main

import (
	"os"

	"perigee/local/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv}))
}
