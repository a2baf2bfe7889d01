package errortext

import (
	"fmt"
	"redrive/internal/errortext/form"
	"strings"
)

func laravel(o object) Error {
	trace, ok := o["trace"].([]any)
	if !ok || o.text("exception") == "" {
		return Error{}
	}

	return Error{Class: o.text("exception"), Message: o.text("message"), Trace: thrownAt(o) + phpTrace(trace)}
}

func symfony(o object) Error {
	trace, ok := o["trace"].([]any)
	if !ok || o.text("class") == "" {
		return Error{}
	}

	return Error{Class: o.text("class"), Message: o.first("detail", "message"), Trace: phpTrace(trace)}
}

// codeIgniter has the class in the place of a problem's title and type.
func codeIgniter(o object) Error {
	trace, ok := o["trace"].([]any)
	if !ok || !form.IsClass(o.text("type")) || o.text("file") == "" {
		return Error{}
	}

	return Error{Class: o.text("type"), Message: o.text("message"), Trace: thrownAt(o) + phpTrace(trace)}
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
	class, trace := o.text("type"), textsOf(o["stack-trace"])
	if o.text("name") == "" || !form.IsClass(class) || len(trace) == 0 && !strings.Contains(class, `\`) {
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

	return Error{Class: class, Message: message, Trace: strings.Join(lines, "\n")}
}

func spring(o object) Error {
	if o["timestamp"] == nil || o["status"] == nil || o.text("path") == "" {
		return Error{}
	}

	e := Error{Class: o.text("exception"), Message: o.text("message"), Trace: o.text("trace")}
	if thrown, ok := traced(e.Trace); ok && e.Class == "" {
		e.Class = thrown.Class
	}

	// Spring Boot can keep the message back; the reason of the status is left.
	if e.Message == "" || e.Message == "No message available" {
		e.Message = o.text("error")
	}

	// {"errors": [{"field": "email", "defaultMessage": "must not be blank"}]}
	var wrong []string
	all, _ := o["errors"].([]any)
	for _, one := range all {
		f, _ := one.(map[string]any)
		if field := object(f); field.text("defaultMessage") != "" {
			wrong = append(wrong, field.text("field")+": "+field.text("defaultMessage"))
		}
	}

	if len(wrong) > 0 {
		e.Message = joinSentences(wrong)
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
