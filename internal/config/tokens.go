package config

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// The bounds of what is given to the parser. It recurses into each level and for each
// entry, and gives each value its whole path, so that a small file could take all memory
// and many minutes. No configuration that people write comes near them.
const (
	maxDepth     = 32     // mappings and lists inside one another
	maxEntries   = 5_000  // of one mapping or list
	maxKey       = 256    // bytes of the name of an entry
	maxTokens    = 50_000 // names, values and signs between them
	maxDocuments = 16     // of which all but one have only comments
)

// tokens splits a file into tokens, and refuses one that would cost the parser too much.
func (f *file) tokens(text string) (token.Tokens, error) {
	var all token.Tokens
	var nested nesting
	var s scanner.Scanner
	s.Init(text)

	for {
		next, err := s.Scan() // an error comes with a token that tells it to the parser
		if errors.Is(err, io.EOF) {
			return all, nil
		}

		for _, t := range next {
			all.Add(t)

			if problem := nested.add(t); problem != "" {
				return nil, &Error{File: f.name, Line: t.Position.Line, Problem: problem}
			}

			if len(all) > maxTokens {
				return nil, &Error{File: f.name, Line: t.Position.Line, Problem: fmt.Sprintf(
					"is too large: more than %d names, values and signs up to here", maxTokens)}
			}
		}
	}
}

// nesting follows how deep a token is nested.
type nesting struct {
	levels    []level
	documents int
}

// level is a collection that is open: in brackets until it is closed, otherwise as
// long as what follows is indented as deep.
type level struct {
	bracket bool
	column  int
	entries int
}

// add takes the next token and returns what is wrong with it, or nothing.
func (n *nesting) add(t *token.Token) (problem string) {
	switch t.Type {
	// "---" closes all that is open.
	case token.DocumentHeaderType:
		n.documents++
		n.levels = nil
	case token.MappingKeyType:
		return `a "?" before a name is not supported; write "name: value"`
	case token.TagType:
		if t.Prev != nil && t.Prev.Type == token.TagType {
			return "anchors, aliases and tags are not supported; write the values out"
		}
	// The ":" behind a name. The column of the name says how deep the entry is nested.
	case token.MappingValueType:
		if t.Prev != nil && len(t.Prev.Value) > maxKey {
			return fmt.Sprintf("a name of %d bytes; a name can have at most %d", len(t.Prev.Value), maxKey)
		}

		if t.Prev != nil {
			n.indent(t.Prev.Position.Column)
		}
	// The "-" before an entry of a list.
	case token.SequenceEntryType:
		n.indent(t.Position.Column)
	// "[" or "{": inside, indentation says nothing.
	case token.SequenceStartType, token.MappingStartType:
		n.levels = append(n.levels, level{bracket: true})
	// The "," between two entries.
	case token.CollectEntryType:
		if n.inBrackets() {
			n.last().entries++
		}
	case token.SequenceEndType, token.MappingEndType:
		if n.inBrackets() {
			n.levels = n.levels[:len(n.levels)-1]
		}
	}

	return n.tooMuch()
}

// tooMuch is what is wrong with the place that was reached, or nothing.
func (n *nesting) tooMuch() string {
	switch {
	case n.documents > maxDocuments:
		return "a second document; write everything into one"
	case len(n.levels) > maxDepth:
		return fmt.Sprintf("is nested too deep: more than %d mappings and lists inside one another", maxDepth)
	case len(n.levels) > 0 && n.last().entries > maxEntries:
		return fmt.Sprintf("is too large: a mapping or list with more than %d entries", maxEntries)
	}

	return ""
}

// indent counts an entry without brackets that begins in a column. It opens its
// collection, unless that is open, and closes those that are indented deeper.
func (n *nesting) indent(column int) {
	if n.inBrackets() {
		return
	}

	for len(n.levels) > 0 && n.last().column > column {
		n.levels = n.levels[:len(n.levels)-1]
	}

	if len(n.levels) == 0 || n.last().column < column {
		n.levels = append(n.levels, level{column: column})
	}

	n.last().entries++
}

// last is the innermost collection that is open. There has to be one.
func (n *nesting) last() *level { return &n.levels[len(n.levels)-1] }

// inBrackets reports whether indentation says nothing at this place.
func (n *nesting) inBrackets() bool { return len(n.levels) > 0 && n.last().bracket }
