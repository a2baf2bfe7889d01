package cli

import (
	"fmt"
	"slices"
	"strings"

	"redrive/internal/cli/console"

	"github.com/alecthomas/kong"
)

// completionCommand is dashboard completion: it prints a script for a shell. The scripts
// know nothing of the commands: they ask the program itself, through [suggestCommand].
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script.
func (k *completionCommand) Run(c console.Console) error {
	_, err := fmt.Fprint(c.Stdout, completionScripts[k.Shell])
	return err
}

// Help says how the script is used.
func (*completionCommand) Help() string {
	return `To try it: source <(dashboard completion bash), or dashboard completion fish | source.

To keep it:
  dashboard completion bash > ~/.local/share/bash-completion/completions/dashboard
  dashboard completion zsh > "${fpath[1]}/_dashboard"
  dashboard completion fish > ~/.config/fish/completions/dashboard.fish`
}

// completionScripts are the scripts, by shell. Where the program suggests nothing,
// the shell completes the names of files.
var completionScripts = map[string]string{
	"bash": `_dashboard() {
	local word
	COMPREPLY=()
	while IFS=$'\t' read -r word _; do
		[ -n "$word" ] && COMPREPLY+=("$word")
	done < <("${COMP_WORDS[0]}" suggest -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _dashboard dashboard
`,
	"zsh": `#compdef dashboard
_dashboard() {
	local -a found
	local word help
	while IFS=$'\t' read -r word help; do
		found+=("${word//:/\\:}:$help")
	done < <("${words[1]}" suggest -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	if (( ${#found} )); then _describe dashboard found; else _files; fi
}
if [ "$funcstack[1]" = "_dashboard" ]; then _dashboard "$@"; else compdef _dashboard dashboard; fi
`,
	"fish": `function __dashboard_suggest
	set -l tokens (commandline -opc)
	set -l found ($tokens[1] suggest -- $tokens[2..-1] (commandline -ct) 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c dashboard -f -a '(__dashboard_suggest)'
`,
}

// suggestCommand is what the scripts of completion call, with the words of the command line
// so far; the last one is still being written, and may be empty.
type suggestCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the words that can stand in the place of the last one, each with its
// help after a tab.
func (s *suggestCommand) Run(c console.Console, k *kong.Context) error {
	words := s.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}

	if len(words) == 0 {
		words = []string{""}
	}

	typed := words[len(words)-1]
	for _, w := range suggestions(k.Model, words) {
		if strings.HasPrefix(w.text, typed) {
			fmt.Fprintf(c.Stdout, "%s\t%s\n", w.text, w.help)
		}
	}

	return nil
}

// suggestion is a word that can stand on the command line.
type suggestion struct{ text, help string }

// suggestions are the words that can stand in the place of the last word.
func suggestions(app *kong.Application, words []string) (all []suggestion) {
	at, typed := app.Node, words[len(words)-1]

	// Walk along the complete words, to the command and the argument that comes next.
	var valued *kong.Flag // the flag whose value comes next
	arguments := 0
	for _, word := range words[:len(words)-1] {
		switch {
		case word == "=": // bash takes --flag=value for three words
		case valued != nil:
			valued = nil
		case strings.HasPrefix(word, "--"):
			valued = flagNamed(at, word)
		default:
			if next := childNamed(at, word); next != nil {
				at = next
			} else {
				arguments++
			}
		}
	}

	if typed == "=" {
		return nil
	}

	if valued != nil {
		return enumOf(valued.Value)
	}

	// What can stand there: a flag, or a command below this one, or a value of the argument.
	if strings.HasPrefix(typed, "-") {
		for _, f := range flagsOf(at) {
			all = append(all, suggestion{"--" + f.Name, f.Help})
		}
		return all
	}

	for _, child := range at.Children {
		if !child.Hidden {
			all = append(all, suggestion{child.Name, child.Help})
		}
	}

	if arguments < len(at.Positional) {
		all = append(all, enumOf(at.Positional[arguments])...)
	}

	return all
}

// flagsOf are the flags that a command takes: its own, and without a command those of
// the default one.
func flagsOf(at *kong.Node) []*kong.Flag {
	flags := slices.Concat(at.AllFlags(true)...)
	if at.DefaultCmd != nil {
		flags = append(flags, at.DefaultCmd.Flags...)
	}

	return slices.DeleteFunc(flags, func(f *kong.Flag) bool { return f.Hidden })
}

// flagNamed is the flag that a word names, if its value comes as the next word.
func flagNamed(at *kong.Node, word string) *kong.Flag {
	name, _, withValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")

	flags := flagsOf(at)
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name })
	if i < 0 || withValue || flags[i].IsBool() {
		return nil
	}

	return flags[i]
}

// childNamed is the command that a word names.
func childNamed(at *kong.Node, word string) *kong.Node {
	i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word || slices.Contains(n.Aliases, word) })
	if i < 0 {
		return nil
	}

	return at.Children[i]
}

// enumOf are the values that a flag or an argument can have, if they are few.
func enumOf(v *kong.Value) (all []suggestion) {
	if v.Enum == "" {
		return nil
	}

	for _, text := range v.EnumSlice() {
		all = append(all, suggestion{text, ""})
	}

	return all
}
