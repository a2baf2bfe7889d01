package lang

import (
	"regexp"
	"strings"

	"redrive/internal/errortext/form"
)

// prisma reads the error of a query. It shows the code that made the query, and says below
// what was wrong:
//
//	PrismaClientKnownRequestError:
//	Invalid `prisma.user.create()` invocation in
//	/app/users.js:3:20
//
//	→ 3 await prisma.user.create(
//	Unique constraint failed on the fields: (`email`)
func prisma(text string) form.Error {
	i := strings.LastIndex(text, "Invalid `")
	if i < 0 {
		return form.Error{}
	}

	lines := strings.Split(text[i:], "\n")
	if !strings.Contains(lines[0], "` invocation") {
		return form.Error{}
	}

	said, rest := prismaSaid(lines[1:])
	if nodeTrace(strings.Join(rest, "\n")).Found() { // that one ended the program
		return form.Error{}
	}

	before := strings.TrimRight(text[:i], " \n")
	t, _ := thrown(before[strings.LastIndexByte(before, '\n')+1:])

	return form.Error{Class: t.class, Message: said}
}

// prismaSaid is the last paragraph below the code, without what it advises, and the lines
// that follow.
func prismaSaid(lines []string) (message string, rest []string) {
	var said, paragraph []string
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if nodeFrame(line) || strings.HasPrefix(line, "Node.js v") || strings.HasPrefix(trimmed, "Please make sure ") {
			rest = lines[i:]
			break
		}

		if trimmed == "" || strings.HasPrefix(trimmed, "→") { // the last line of code
			paragraph = nil
			continue
		}

		paragraph = append(paragraph, trimmed)
		said = paragraph
	}

	return strings.Join(said[:min(len(said), 1+form.MaxContinued)], "\n"), rest
}

var tscForm = regexp.MustCompile(`^\S.*(?:\(\d+,\d+\):|:\d+:\d+ -) error (TS\d+): (.+)$`)

// typescript reads the first error of the compiler:
//
//	src/rates.ts(3,5): error TS2304: Cannot find name 'rate'.
//	src/rates.ts:3:5 - error TS2304: Cannot find name 'rate'.
func typescript(text string) form.Error {
	for line := range strings.SplitSeq(text, "\n") {
		m := tscForm.FindStringSubmatch(line)
		if m != nil {
			return form.Error{Class: m[1], Message: m[2]}
		}
	}

	return form.Error{}
}

// jest reads the first test that failed: its name, and what was expected.
//
//	● rates › reads XAU
//
//	  expect(received).toBe(expected)
//
// What the tests of a file printed stands above that, with "Console" in the place of a name.
func jest(text string) form.Error {
	for _, report := range strings.Split(text, "\n  ● ")[1:] {
		title, rest, _ := strings.Cut(report, "\n")
		if title != "Console" {
			return form.Error{Message: title + ": " + firstLine(strings.TrimLeft(rest, " \n"))}
		}
	}

	return form.Error{}
}

// pnpm reads what pnpm says of a command that it did not start:
//
//	ERR_PNPM_NO_MATCHING_VERSION  No matching version found for feeds@9
func pnpm(text string) form.Error {
	for line := range strings.SplitSeq(text, "\n") {
		code, said, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if ok && strings.HasPrefix(code, "ERR_PNPM_") {
			return form.Error{Class: code, Message: strings.TrimSpace(said)}
		}
	}

	return form.Error{}
}

// oclif reads an error that stands behind a bar, as tools made with oclif print it:
//
//	›   Error: Missing 1 required arg:
//	›   feed  the feed
func oclif(text string) form.Error {
	const bar = "›   "
	var said []string
	for line := range strings.SplitSeq(text, "\n") {
		_, line, ok := strings.Cut(line, bar)
		first, begins := strings.CutPrefix(line, "Error: ")
		switch {
		case begins:
			said = []string{first}
		case ok && said != nil && len(said) <= form.MaxContinued && !strings.HasPrefix(line, "See more help"):
			said = append(said, line)
		}
	}

	return form.Error{Message: strings.Join(said, "\n")}
}
