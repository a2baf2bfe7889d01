package errortext

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"redrive/internal/errortext/form"
	"slices"
	"strings"
)

// shape is how a family of frameworks writes an error in a JSON object.
type shape struct {
	framework string
	read      func(object) Error
}

// shapes are asked in this order. They are no variable, because the message in some of them
// is a text that is read by all readers again.
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
		return Error{Message: joinSentences(textsOf(value))}
	}

	for _, shape := range shapes() {
		if e := shape.read(o); e.Found() {
			return e
		}
	}

	return Error{}
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

	return Error{Message: joinSentences(wrong)}
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
	// {"errors": {"email": ["is taken"]}}
	case map[string]any:
		if detail := object(all).text("detail"); detail != "" {
			return Error{Message: detail}
		}
		return Error{Message: fieldErrors(all)}
	// {"errors": [{"message": "not found"}]}, or a list of texts
	case []any:
		said := textsOf(all)
		for _, one := range all {
			f, _ := one.(map[string]any)
			if e := problem(f); e.Found() {
				said = append(said, e.Message)
			} else if text := object(f).first("message", "msg", "detail"); text != "" {
				said = append(said, text)
			}
		}

		return Error{Message: joinSentences(said)}
	}

	return Error{}
}

// message is the text that most services agree on, under one of its names.
func message(o object) Error {
	e := Error{Message: joinSentences(textsOf(o["message"]))}
	if e.Message == "" {
		e.Message = o.first("error_description", "detail", "description", "errorMessage", "error_message", "msg", "reason", "error", "Message")
	}

	if e.Message == "" {
		return e
	}

	// OAuth: {"error": "invalid_grant", "error_description": "Token has expired"} is
	// "invalid_grant: Token has expired".
	code := o.text("error")
	if o.text("error_description") != "" && code != "" {
		e.Message = code + ": " + e.Message
	}

	if class := o.first("exception", "name", "__type", "class"); form.IsClass(class) {
		e.Class = class
	}

	// The first of these names that says something has the trace, as one text or as a list of
	// lines.
	for _, name := range [...]string{"stack", "trace", "stackTrace", "stack_trace", "backtrace"} {
		if e.Trace == "" {
			e.Trace = strings.Join(textsOf(o[name]), "\n")
		}
	}

	// The trace can name the class where no field does.
	if thrown, ok := traced(e.Trace); ok && e.Class == "" {
		e.Class = thrown.Class
	}

	return e
}

// fieldsOnly is an object of nothing but the names of fields and what is wrong
// with each.
func fieldsOnly(o object) Error {
	for _, value := range o {
		if all, ok := value.([]any); !ok || len(textsOf(all)) != len(all) {
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
		if wrong := textsOf(all[name]); len(wrong) > 0 {
			said = append(said, name+": "+strings.Join(wrong, ", "))
		}
	}

	return joinSentences(said)
}
