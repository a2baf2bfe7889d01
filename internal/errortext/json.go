package errortext

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// object is a JSON object. What is absent or of another type than expected reads
// as the zero value: half of an answer is better than none.
type object map[string]any

// shape is how a family of frameworks writes an error in a JSON object.
type shape struct {
	framework string
	read      func(object) Error
}

// shapes are asked in this order. Like [forms], they are no variable.
func shapes() []shape {
	return []shape{{"Laravel with APP_DEBUG", laravel},
		{"Symfony in debug mode", symfony},
		{"CodeIgniter in development", codeIgniter},
		{"CodeIgniter: an API's answer", messages},
		{"Yii in debug mode", yii},
		{"Rails", rails},
		{"Spring Boot", spring},
		{"Quarkus", quarkus},
		{"ASP.NET in development", aspnet},
		{"FastAPI: validation", detailList},
		{"Laravel: validation", messageAndFields},
		{"RFC 9457: ASP.NET, Symfony, Spring, Quarkus", problem},
		{"API Platform", hydra},
		{"Phoenix, JSON:API, GraphQL", errorList},
		{"a message: NestJS, Fastify, Express, Go, Django REST framework, gRPC-gateway, OAuth", message},
		{"Django REST framework: validation", fieldsOnly},
	}
}

func fromJSON(body string) Error {
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return Error{}
	}

	o, ok := value.(map[string]any)
	if !ok {
		return Error{Message: list(texts(value))}
	}

	for _, shape := range shapes() {
		if e := shape.read(o); e.found() {
			return e
		}
	}

	return Error{}
}

func laravel(o object) Error {
	trace, ok := o["trace"].([]any)
	if !ok || o.text("exception") == "" {
		return Error{}
	}

	return Error{o.text("exception"), o.text("message"), thrownAt(o) + phpTrace(trace)}
}

func symfony(o object) Error {
	trace, ok := o["trace"].([]any)
	if !ok || o.text("class") == "" {
		return Error{}
	}

	return Error{o.text("class"), o.first("detail", "message"), phpTrace(trace)}
}

// codeIgniter has the class in the place of a problem's title and type.
func codeIgniter(o object) Error {
	trace, ok := o["trace"].([]any)
	if !ok || !isClass(o.text("type")) || o.text("file") == "" {
		return Error{}
	}

	return Error{o.text("type"), o.text("message"), thrownAt(o) + phpTrace(trace)}
}

// messages are fields and what is wrong with each. One that has the name error speaks
// for the whole request.
func messages(o object) Error {
	all, _ := o["messages"].(map[string]any)
	if said := object(all).text("error"); said != "" && len(all) == 1 {
		return Error{Message: said}
	}

	return Error{Message: fieldErrors(o["messages"])}
}

// yii has a name that people read beside the class, and a trace as PHP prints it,
// unless the error is an answer to the client.
func yii(o object) Error {
	class, trace := o.text("type"), texts(o["stack-trace"])
	if o.text("name") == "" || !isClass(class) || len(trace) == 0 && !strings.Contains(class, `\`) {
		return Error{}
	}

	e := Error{Class: class, Message: o.text("message")}
	if len(trace) > 0 {
		e.Trace = thrownAt(o) + strings.Join(trace, "\n")
	}

	return e
}

// thrownAt is the place at which an error was thrown, the first line of a trace of PHP.
func thrownAt(o object) string { return fmt.Sprintf("%s:%v\n", o.text("file"), o["line"]) }

// phpTrace writes the frames of a trace as PHP prints them.
func phpTrace(frames []any) string {
	var b strings.Builder
	for i, frame := range frames {
		f, _ := frame.(map[string]any)

		o := object(f)
		place := "[internal function]"
		if o.text("file") != "" {
			place = fmt.Sprintf("%s(%v)", o.text("file"), o["line"])
		}

		fmt.Fprintf(&b, "#%d %s", i, place)

		if o.text("function") != "" {
			fmt.Fprintf(&b, ": %s%s%s()", o.text("class"), o.text("type"), o.text("function"))
		}

		b.WriteByte('\n')
	}

	return b.String()
}

func rails(o object) Error {
	inspected, ok := strings.CutPrefix(o.text("exception"), "#<")
	if !ok {
		return Error{}
	}

	class, message, _ := strings.Cut(strings.TrimSuffix(inspected, ">"), ": ")

	traces, _ := o["traces"].(map[string]any)
	var lines []string
	for _, name := range [...]string{"Full Trace", "Application Trace"} {
		all, _ := traces[name].([]any)
		if len(lines) == 0 {
			for _, line := range all {
				f, _ := line.(map[string]any)
				lines = append(lines, object(f).text("trace"))
			}
		}
	}

	return Error{class, message, strings.Join(lines, "\n")}
}

func spring(o object) Error {
	if o["timestamp"] == nil || o["status"] == nil || o.text("path") == "" {
		return Error{}
	}

	e := Error{o.text("exception"), o.text("message"), o.text("trace")}
	if thrown, ok := traced(e.Trace); ok && e.Class == "" {
		e.Class = thrown.Class
	}

	if e.Message == "" || e.Message == "No message available" {
		e.Message = o.text("error")
	}

	var wrong []string
	all, _ := o["errors"].([]any)
	for _, one := range all {
		f, _ := one.(map[string]any)
		if field := object(f); field.text("defaultMessage") != "" {
			wrong = append(wrong, field.text("field")+": "+field.text("defaultMessage"))
		}
	}

	if len(wrong) > 0 {
		e.Message = list(wrong)
	}

	return e
}

func quarkus(o object) Error {
	e, _ := traced(o.text("stack"))
	e.Trace = o.text("stack")
	return e
}

func aspnet(o object) Error {
	exception, _ := o["exception"].(map[string]any)
	details := object(exception).text("details")
	e, _ := traced(details)
	e.Trace = details

	return e
}

// detailList is what a validation found: where, and what is wrong there.
func detailList(o object) Error {
	all, _ := o["detail"].([]any)
	var wrong []string
	for _, one := range all {
		f, _ := one.(map[string]any)

		field := object(f)
		if field.text("msg") == "" {
			continue
		}

		var place []string
		loc, _ := f["loc"].([]any)
		for _, part := range loc {
			place = append(place, fmt.Sprint(part))
		}

		wrong = append(wrong, strings.TrimPrefix(strings.Join(place, ".")+": "+field.text("msg"), ": "))
	}

	return Error{Message: list(wrong)}
}

// messageAndFields is a message that speaks for all fields, which are told beside it.
func messageAndFields(o object) Error {
	fields := fieldErrors(o["errors"])
	if fields == "" || o.text("message") == "" {
		return Error{}
	}

	return Error{Message: o.text("message"), Trace: fields}
}

// problem is a title, which is the same for all problems of a kind, and a detail.
func problem(o object) Error {
	title, detail, fields := o.text("title"), o.text("detail"), fieldErrors(o["errors"])
	if title == "" || o["status"] == nil && o["type"] == nil && detail == "" {
		return Error{}
	}

	if detail != "" && saysNothing(title) {
		title = ""
	}

	said := slices.DeleteFunc([]string{strings.TrimSuffix(title, "."), detail, fields}, func(s string) bool { return s == "" })

	return Error{Message: strings.Join(said, ": ")}
}

// saysNothing reports whether a title only repeats the status of the answer.
func saysNothing(title string) bool {
	if title == "An error occurred" {
		return true
	}

	for status := 400; status < 600; status++ {
		if strings.EqualFold(title, http.StatusText(status)) {
			return true
		}
	}

	return false
}

func hydra(o object) Error {
	return Error{Message: o.first("hydra:description", "hydra:title")}
}

func errorList(o object) Error {
	switch all := o["errors"].(type) {
	case map[string]any:
		if detail := object(all).text("detail"); detail != "" {
			return Error{Message: detail}
		}
		return Error{Message: fieldErrors(all)}
	case []any:
		said := texts(all)
		for _, one := range all {
			f, _ := one.(map[string]any)
			if e := problem(f); e.found() {
				said = append(said, e.Message)
			} else if text := object(f).first("message", "msg", "detail"); text != "" {
				said = append(said, text)
			}
		}

		return Error{Message: list(said)}
	}

	return Error{}
}

// message is the text that most services agree on, under one of its names.
func message(o object) Error {
	e := Error{Message: list(texts(o["message"]))}
	if e.Message == "" {
		e.Message = o.first("error_description", "detail", "description", "errorMessage", "error_message", "msg", "reason", "error", "Message")
	}

	if e.Message == "" {
		return e
	}

	if code := o.text("error"); o.text("error_description") != "" && code != "" {
		e.Message = code + ": " + e.Message
	}

	if class := o.first("exception", "name", "__type", "class"); isClass(class) {
		e.Class = class
	}

	for _, name := range [...]string{"stack", "trace", "stackTrace", "stack_trace", "backtrace"} {
		if e.Trace == "" {
			e.Trace = strings.Join(texts(o[name]), "\n")
		}
	}

	if thrown, ok := traced(e.Trace); ok && e.Class == "" {
		e.Class = thrown.Class
	}

	return e
}

// fieldsOnly is an object of nothing but the names of fields and what is wrong
// with each.
func fieldsOnly(o object) Error {
	for _, value := range o {
		if all, ok := value.([]any); !ok || len(texts(all)) != len(all) {
			return Error{}
		}
	}

	return Error{Message: fieldErrors(map[string]any(o))}
}

// fieldErrors tells the names of fields and what is wrong with each, ordered by
// their names.
func fieldErrors(value any) string {
	all, _ := value.(map[string]any)
	var said []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if wrong := texts(all[name]); len(wrong) > 0 {
			said = append(said, name+": "+strings.Join(wrong, ", "))
		}
	}

	return list(said)
}

// list is some sentences as one.
func list(sentences []string) string {
	for i := range max(0, len(sentences)-1) {
		sentences[i] = strings.TrimSuffix(sentences[i], ".")
	}
	return strings.Join(sentences, "; ")
}

// texts is a text, or the texts of a list.
func texts(value any) []string {
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return []string{v}
		}
	case []any:
		var all []string
		for _, one := range v {
			if s, ok := one.(string); ok {
				all = append(all, s)
			}
		}

		return all
	}

	return nil
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

// first is the first text that is there.
func (o object) first(names ...string) string {
	for _, name := range names {
		if s := o.text(name); strings.TrimSpace(s) != "" {
			return s
		}
	}

	return ""
}
