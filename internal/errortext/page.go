package errortext

import (
	"redrive/internal/clip"
	"redrive/internal/errortext/form"
	"strings"

	"golang.org/x/net/html"
)

// page is what a page of HTML shows of an error.
type page struct {
	title, heading string
	blocks         []string // text as a program printed it: pre, textarea, comments
	text           strings.Builder
}

// fromPage reads a page: the traceback that is somewhere on it, or its title, or else what it
// says.
func fromPage(body string) Error {
	p := parsePage(body)
	for _, block := range p.blocks {
		if e := fromText(block); e.Found() {
			return e
		}
	}

	for _, text := range append([]string{p.title, p.heading}, p.blocks...) {
		if text != "" && !strings.EqualFold(text, "error") {
			return Error{Message: text}
		}
	}

	if text := clip.Line(p.text.String()); !form.IsBlank(text) {
		return Error{Message: clip.Text(text, maxText)}
	}

	return Error{}
}

// parsePage gathers what stands in a page where errors stand, in one walk over its elements.
func parsePage(body string) *page {
	p := &page{}

	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken: // the end, or where the page was cut off
			return p

		// What frameworks hide in the page: the trace.
		case html.CommentToken:
			text := strings.TrimSpace(html.UnescapeString(string(z.Text())))
			if !strings.HasPrefix(text, "?") { // the declaration of XML
				p.blocks = append(p.blocks, text)
			}

		case html.TextToken:
			if p.text.Len() <= maxText {
				p.text.WriteString(string(z.Text()) + " ")
			}

		case html.StartTagToken:
			switch name, _ := z.TagName(); string(name) {
			case "script", "style":
				textOf(z, string(name))
			case "title":
				p.title = clip.Line(textOf(z, "title"))
			case "h1":
				text := clip.Line(textOf(z, "h1"))
				if p.heading == "" {
					p.heading = text
				}
			case "pre":
				p.blocks = append(p.blocks, textOf(z, "pre"))
			case "textarea":
				p.blocks = append(p.blocks, textOf(z, "textarea"))
			}
		}
	}
}

// textOf is the text up to the end of an element.
func textOf(z *html.Tokenizer, element string) string {
	var b strings.Builder

	for {
		switch z.Next() {
		case html.TextToken:
			b.WriteString(strings.ReplaceAll(string(z.Text()), "\u00a0", " "))

		case html.StartTagToken, html.SelfClosingTagToken:
			if name, _ := z.TagName(); string(name) == "br" {
				b.WriteByte('\n')
			}

		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == element {
				return strings.TrimSpace(b.String())
			}

		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		}
	}
}
