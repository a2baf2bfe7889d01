package errortext

import (
	"encoding/xml"
	"io"
	"redrive/internal/clip"
	"redrive/internal/errortext/form"
	"strings"
)

// fromMarkup reads a document of HTML or XML. A document without a sign of XML is HTML.
func fromMarkup(body string) Error {
	if isHTML(body) {
		return fromPage(body)
	}
	return fromXML(body)
}

// isHTML goes by the name of the first element.
func isHTML(body string) bool {
	for {
		body = strings.TrimLeft(body, " \t\r\n")
		switch {
		case strings.HasPrefix(body, "<?"):
			_, body, _ = strings.Cut(body, "?>")
		case strings.HasPrefix(body, "<!--"):
			_, body, _ = strings.Cut(body, "-->")
		case strings.HasPrefix(body, "<!"):
			declaration, rest, _ := strings.Cut(body, ">")
			if strings.Contains(strings.ToLower(declaration), "html") {
				return true
			}

			body = rest
		default:
			return !strings.HasPrefix(body, "<") || htmlElements[elementName(body)]
		}
	}
}

// htmlElements are those with which pages without a declaration begin, or with parts of pages.
var htmlElements = setOf(`
	html head body title meta link script style h1 h2 h3 p pre div span center table br hr textarea
	b i a font strong form main section ul ol`)

// elementName is the name of the element with which a text begins, in small letters.
func elementName(s string) string {
	s = s[1:]
	const longest = 40

	s = s[:min(len(s), longest)]
	if end := strings.IndexAny(s, " \t\r\n/>"); end >= 0 {
		s = s[:end]
	}

	return strings.ToLower(s)
}

// element is one of an XML document.
type element struct {
	name     string   // in small letters, without its prefix
	texts    []string // what stands in it beside other elements
	children []*element
}

// documents are asked in this order. They never change.
var documents = [...]struct {
	kind string
	read func(root *element) Error
}{
	{"SOAP, WCF", soap},
	{"ASP.NET", aspnetXML},
	{"S3 and other services of AWS, Azure and Google", coded},
	{"what is JSON elsewhere: problems, Spring Boot, Quarkus", asJSON},
	{"any document", allText},
}

// fromXML reads a document as far as it goes: one that is cut off or malformed means what
// comes before that place.
func fromXML(body string) Error {
	root := parseXML(body)
	for _, d := range documents {
		if e := d.read(root); e.Found() {
			return e
		}
	}

	return Error{}
}

// parseXML returns an element without a name that holds the document.
func parseXML(body string) *element {
	decoder := xml.NewDecoder(strings.NewReader(body))
	decoder.Strict = false
	decoder.Entity = xml.HTMLEntity
	decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is decoded already

	root := &element{}
	open := []*element{root}
	for {
		// A document that breaks off has what was read of it.
		token, err := decoder.RawToken()
		if err != nil {
			return root
		}

		inner := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{name: strings.ToLower(t.Name.Local)}
			inner.children = append(inner.children, e)
			open = append(open, e)
		// The names at the end of elements are not compared: what is closed is the innermost
		// element.
		case xml.EndElement:
			if len(open) > 1 {
				open = open[:len(open)-1]
			}
		case xml.CharData:
			if said := string(t); !form.IsBlank(said) {
				inner.texts = append(inner.texts, strings.Trim(said, "\r\n"))
			}
		}
	}
}

// text keeps the indentation that traces have.
func (e *element) text() string { return strings.Join(e.texts, "\n") }

// all are the elements within an element, in the order of the document.
func (e *element) all(yield func(*element) bool) {
	waiting := []*element{e}
	for len(waiting) > 0 {
		next := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]

		if next != e && !yield(next) {
			return
		}

		for i := len(next.children) - 1; i >= 0; i-- {
			waiting = append(waiting, next.children[i])
		}
	}
}

// within is the first element with one of the names within an element, an empty one if there
// is none.
func (e *element) within(names ...string) *element {
	for inner := range e.all {
		for _, name := range names {
			if inner.name == name {
				return inner
			}
		}
	}

	return &element{}
}

// child is the text of the first element right below one that has one of the names.
func (e *element) child(names ...string) string {
	for _, name := range names {
		for _, c := range e.children {
			if c.name == name && len(c.texts) > 0 {
				return strings.TrimSpace(c.text())
			}
		}
	}

	return ""
}

// faultCodes only say who is to blame, in small letters.
var faultCodes = setOf(`server client sender receiver mustunderstand versionmismatch dataencodingunknown`)

// soap reads a fault of SOAP 1.1 or 1.2, and the exception that it holds.
func soap(root *element) Error {
	fault := root.within("fault")
	e := Error{Message: clip.Line(fault.child("faultstring"))}
	if e.Message == "" {
		e.Message = clip.Line(fault.within("reason").child("text"))
	}

	if e.Message == "" {
		return Error{}
	}

	code := fault.child("faultcode")
	for value := range fault.within("code").all { // the innermost of subcodes is the last one
		if value.name == "value" {
			code = value.text()
		}
	}

	code = strings.TrimSpace(code[strings.LastIndexByte(code, ':')+1:])
	if form.IsClass(code) && !faultCodes[strings.ToLower(code)] {
		e.Class = code
	}

	return withDetail(e, fault.within("detail"))
}

// withDetail is the error of a fault with what its detail says: an exception, or a text.
func withDetail(e Error, detail *element) Error {
	if thrown := exception(detail.within("exceptiondetail")); thrown.Found() {
		return thrown
	}

	said := detail.within("message", "errormessage", "faultmessage", "description", "text", "reason").text()
	if said == "" {
		said = allText(detail).Message
	}

	if thrown, ok := Output(said); ok {
		e.Trace = said
		return e.Because(thrown.Class, thrown.Message)
	}

	said = clip.Line(said)
	if said != "" && !strings.Contains(e.Message, said) {
		e.Message += ": " + said
	}

	return e
}

// exception reads the elements of an exception of .NET. What caused it stands within it.
func exception(thrown *element) Error {
	e := Error{
		Class:   thrown.child("exceptiontype", "type"),
		Message: clip.Line(thrown.child("exceptionmessage", "message")),
	}

	// A class of .NET has a namespace: System.ArgumentNullException.
	if !form.IsClass(e.Class) || !strings.Contains(e.Class, ".") {
		return Error{}
	}

	for _, c := range thrown.children {
		if c.name == "stacktrace" {
			e.Trace = c.text()
		}
	}

	// The last inner exception that says something is the innermost one.
	cause := thrown
	for inner := range thrown.all {
		if inner.name == "innerexception" && len(inner.children) > 0 {
			cause = inner
		}
	}

	if cause != thrown {
		return e.Because(cause.child("exceptiontype", "type"), clip.Line(cause.child("exceptionmessage", "message")))
	}

	return e
}

func aspnetXML(root *element) Error {
	for inner := range root.all {
		if e := exception(inner); e.Found() {
			return e
		}
	}

	return Error{}
}

// coded reads an element that has a code and a message.
func coded(root *element) Error {
	for inner := range root.all {
		code, said := inner.child("code", "errorcode"), inner.child("message", "errormessage", "description")
		if code == "" || said == "" {
			continue
		}

		said, _, _ = strings.Cut(said, "\nRequestId:") // of Azure, which goes on with the time

		e := Error{Message: clip.Line(said)}
		switch {
		case form.IsClass(code):
			e.Class = code
		case !isNumber(code):
			e.Message = code + ": " + e.Message
		}

		if details := clip.Line(inner.child("details")); details != "" {
			e.Message = strings.TrimSuffix(e.Message, ".") + ": " + details
		}

		return e
	}

	return Error{}
}

// asJSON reads a document whose elements have the names of the fields of a JSON object.
func asJSON(root *element) Error {
	for inner := range root.all {
		o := object{}
		for _, c := range inner.children {
			if len(c.texts) > 0 && len(c.children) == 0 {
				o[c.name] = c.text()
			}
		}

		if len(o) == 0 {
			continue
		}

		for _, read := range [...]func(object) Error{spring, problem, message} {
			if e := read(o); e.Found() {
				return e
			}
		}
	}

	return Error{}
}

// maxText is how much is told of the text of a document that is not known.
const maxText = 512

// allText is the text of a document without its tags.
func allText(root *element) Error {
	var b strings.Builder
	for inner := range root.all {
		if b.Len() > maxText {
			break
		}

		if said := inner.text(); said != "" {
			b.WriteString(said + " ")
		}
	}

	return Error{Message: clip.Text(clip.Line(b.String()), maxText)}
}
