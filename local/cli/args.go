package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perigee/engine/words"
)

// needArgs asks for at least n arguments.
func needArgs(n int, message string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return usage("%s; see `%s --help`", message, cmd.CommandPath())
		}
		return nil
	}
}

// argsBetween asks for at least n and at most m arguments.
func argsBetween(n, m int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= n && len(args) <= m {
			return nil
		}
		if flag := switched(cmd); flag != "" && len(args) > m && slices.ContainsFunc(args, isTruth) {
			return usage("expected no value behind --%s, which may stand alone: write --%[1]s=true or --%[1]s=false; see `%s --help`", flag, cmd.CommandPath())
		}
		return usage("expected `%s`, got %s; see `%s --help`", strings.TrimSuffix(cmd.UseLine(), " [flags]"), plural(len(args), "argument"), cmd.CommandPath())
	}
}

// noArgs is for commands that have flags alone.
var noArgs = argsBetween(0, 0)

// isTruth reports whether an argument looks like the value of a switch. Such
// flags take theirs behind an equals sign alone.
func isTruth(arg string) bool { return arg == "true" || arg == "false" }

// switched is a flag of the command line that may stand without a value, "" for
// none.
func switched(cmd *cobra.Command) (name string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" {
			name = f.Name
		}
	})
	return name
}

// group makes a command that only holds others refuse what is none of them.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.Args = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// unknownCommand is the error for a word that is no command below cmd.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	meant := ""
	if near := words.Nearest(word, names); near != "" {
		meant = ": did you mean " + near + "?"
	}
	return usage("unknown command %q for %q%s; see `%s --help`", word, cmd.CommandPath(), meant, cmd.CommandPath())
}

// strictHelp makes cobra's help and completion commands refuse names that they
// do not know: they print the help then, as if it had been asked for.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			group(c)
		case "help":
			c.Run = nil
			c.RunE = func(_ *cobra.Command, args []string) error {
				about, rest, _ := root.Find(args)
				if len(rest) > 0 {
					return unknownCommand(about, rest[0])
				}
				about.InitDefaultHelpFlag()
				about.InitDefaultVersionFlag()
				return about.Help()
			}
		}
	}
}
