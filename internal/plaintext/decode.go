package plaintext

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Decode is the text of a body in the encoding that its producer names: by a byte order mark,
// by the charset of the header Content-Type, by the declaration of XML or by a meta element of
// HTML, in this order. Where nothing is named it is UTF-8, or else Windows-1252 if that gives
// text. What cannot be decoded is replaced by U+FFFD. Binary data gives nothing.
func Decode(body []byte, contentType string) string {
	if text, ok := marked(body); ok {
		return text
	}

	named := encodingOf(charsetOf(contentType), body)
	if named == nil {
		named = unmarkedUTF16(body)
	}

	if named == nil {
		named = encodingOf(declared(body), body)
	}

	if named != nil && (named != unicode.UTF8 || utf8.Valid(body)) {
		return decoded(body, named)
	}

	body = bytes.TrimRight(body, "\x00")
	switch {
	case isBinary(body):
		return ""
	case !utf8.Valid(body) && isWindows1252(body):
		return decoded(body, charmap.Windows1252)
	}

	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// marks are the byte order marks. That of UTF-32 begins as that of UTF-16 does, so it stands
// first. They never change.
var marks = [...]struct {
	mark     string
	encoding encoding.Encoding
}{
	{"\xef\xbb\xbf", unicode.UTF8},
	{"\xff\xfe\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{"\x00\x00\xfe\xff", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{"\xff\xfe", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{"\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
}

// marked is a body with a byte order mark as text, without the mark.
func marked(body []byte) (string, bool) {
	for _, m := range marks {
		if rest, ok := bytes.CutPrefix(body, []byte(m.mark)); ok {
			return decoded(rest, m.encoding), true
		}
	}

	return "", false
}

// decoded never fails: decoders put U+FFFD in the place of what they do not know.
func decoded(body []byte, from encoding.Encoding) string {
	text, err := from.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}

	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// charsetOf is the charset that a header Content-Type names, however malformed it is.
func charsetOf(contentType string) string {
	if _, parameters, err := mime.ParseMediaType(contentType); err == nil {
		return parameters["charset"]
	}

	_, charset, _ := strings.Cut(strings.ToLower(contentType), "charset=")
	charset, _, _ = strings.Cut(charset, ";")

	return strings.Trim(charset, `"' `)
}

// encodingOf is the encoding with a name, nil for one that is not known. The order of the
// bytes is the body's own where the name does not tell it.
func encodingOf(name string, body []byte) encoding.Encoding {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "":
		return nil
	case "utf-16", "utf16", "ucs-2", "unicode":
		if own := unmarkedUTF16(body); own != nil {
			return own
		}
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "utf-32", "utf32", "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	}

	known, err := htmlindex.Get(name)
	if err != nil || known == encoding.Replacement {
		return nil
	}

	return known
}

// unmarkedUTF16 is UTF-16 if a body begins with two characters of ASCII in it, as JSON and XML
// do; otherwise nil.
func unmarkedUTF16(body []byte) encoding.Encoding {
	if len(body) < 4 {
		return nil
	}

	isASCII := func(c byte) bool { return c >= ' ' && c < 0x7f || c == '\t' || c == '\r' || c == '\n' }
	switch {
	case isASCII(body[0]) && body[1] == 0 && isASCII(body[2]) && body[3] == 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case body[0] == 0 && isASCII(body[1]) && body[2] == 0 && isASCII(body[3]):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}

	return nil
}

// maxDeclared is how much of a document is read to find the name of its encoding, as in
// browsers.
const maxDeclared = 1024

// declared is the encoding that an XML declaration or a meta element of HTML names.
func declared(body []byte) string {
	head := bytes.TrimLeft(body[:min(len(body), maxDeclared)], " \t\r\n")
	if !bytes.HasPrefix(head, []byte("<")) {
		return ""
	}

	document := strings.ToLower(strings.ToValidUTF8(string(head), "\uFFFD"))
	if strings.HasPrefix(document, "<?xml") {
		declaration, _, _ := strings.Cut(document, ">")
		if name := assigned(declaration, "encoding"); name != "" {
			return withoutUTF16(name)
		}
	}

	for {
		_, rest, ok := strings.Cut(document, "<meta")
		if !ok {
			return ""
		}

		var tag string
		tag, document, _ = strings.Cut(rest, ">")
		if name := assigned(tag, "charset"); name != "" {
			return withoutUTF16(name)
		}
	}
}

// assigned is the value behind a name and "=" in a tag, with or without quotes.
func assigned(tag, name string) string {
	_, value, _ := strings.Cut(tag, name)

	value, ok := strings.CutPrefix(strings.TrimLeft(value, " "), "=")
	if !ok {
		return ""
	}

	value = strings.TrimLeft(value, ` "'`)
	if end := strings.IndexAny(value, "\"' ;/?"); end >= 0 {
		value = value[:end]
	}

	return value
}

// withoutUTF16 is a name that was read as ASCII, so that the document cannot be what it says
// if that is UTF-16.
func withoutUTF16(name string) string {
	if strings.HasPrefix(name, "utf-16") {
		return "utf-8"
	}
	return name
}

// isBinary reports whether bytes are no text in any encoding that goes beyond ASCII: too many
// of them are control characters that text does not have.
func isBinary(body []byte) bool {
	const oneOf = 20

	controls := 0
	for _, c := range body {
		if c < ' ' && strings.IndexByte("\t\n\v\f\r\b\a\x1b", c) < 0 || c == 0x7f {
			controls++
		}
	}

	return controls*oneOf > len(body)
}

// isWindows1252 reports whether bytes can be text in Windows-1252: none of them is undefined
// there, and they have no character of UTF-8, which would say that it is UTF-8 with an error.
func isWindows1252(body []byte) bool {
	for _, undefined := range []byte("\x81\x8d\x8f\x90\x9d") {
		if bytes.IndexByte(body, undefined) >= 0 {
			return false
		}
	}

	i := 0
	for i < len(body) {
		r, size := utf8.DecodeRune(body[i:])
		if r != utf8.RuneError && size > 1 {
			return false
		}

		i += size
	}

	return true
}
