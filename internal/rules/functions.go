package rules

import (
	"slices"
	"strings"
	"time"

	"redrive/internal/wire"
)

// parseDuration is the function duration of the language.
func parseDuration(args ...any) (any, error) {
	return wire.ParseDuration(args[0].(string))
}

// seconds is the function of that name, for numbers with a fraction, too.
func seconds(args ...any) (any, error) {
	n, err := numberOf(args[0])
	if err != nil { // unreachable: the language has checked it
		return nil, err
	}

	return notNegative(n * float64(time.Second))
}

// function is what a function does with its first argument.
type function struct {
	name  string
	cost  int
	grows int // bytes that it gives for each byte; 0: a number, a bool, a word
}

// loops go through a list. They never stand inside one another.
var loops = [...]function{
	{"all", 10, 0}, {"any", 10, 0}, {"none", 10, 0}, {"one", 10, 0}, {"count", 10, 0}, {"find", 10, 1}, {"findIndex", 10, 0},
	{"filter", 20, 1}, {"sum", 20, 0},
}

// functions are all that can be called, with seconds.
var functions = [...]function{
	{"len", copyCost, 0}, {"lower", 15, 1}, {"upper", 15, 1}, {"trim", 30, 1}, {"trimPrefix", copyCost, 1}, {"trimSuffix", copyCost, 1},
	{"indexOf", seekCost, 0}, {"lastIndexOf", seekCost, 0}, {"hasPrefix", copyCost, 0}, {"hasSuffix", copyCost, 0},
	{"string", 90, 2}, {"int", 20, 0}, {"float", 20, 0}, {"abs", 0, 0}, {"ceil", 0, 0}, {"floor", 0, 0}, {"round", 0, 0},
	{"min", 60, 1}, {"max", 60, 1}, {"first", copyCost, 1}, {"last", copyCost, 1}, {"type", 0, 0}, {"duration", 60, 0},
}

// find looks for a function by its name.
func find(all []function, name string) (function, bool) {
	k := slices.IndexFunc(all, func(f function) bool { return f.name == name })
	if k < 0 {
		return function{}, false
	}

	return all[k], true
}

// names lists functions for an error.
func names(all []function) string {
	var list []string
	for _, f := range all {
		list = append(list, f.name)
	}

	return strings.Join(list, ", ")
}
