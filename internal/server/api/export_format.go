package api

import (
	"encoding/csv"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// asNDJSON writes each row as the API would, one on a line, and no header.
func asNDJSON(w io.Writer) format {
	return func(r row) error {
		if r.json == nil {
			return nil
		}

		_, err := w.Write(append(r.json, '\n'))

		return err
	}
}

// asCSV writes each row under a header with the names of the API.
func asCSV(w io.Writer) format {
	out := csv.NewWriter(w)

	return func(r row) error {
		for i, cell := range r.cells {
			r.cells[i] = harmless(cell)
		}

		if err := out.Write(r.cells); err != nil {
			return err
		}

		out.Flush()

		return out.Error()
	}
}

// formulaSigns begin a formula, in some languages also as wide as a Chinese letter.
const formulaSigns = "=+-@\uFF1D\uFF0B\uFF0D\uFF20"

// harmless keeps a spreadsheet from running a cell as a formula. Payloads and
// error messages come from outside, so a cell may well begin with an equals
// sign, behind characters that the spreadsheet leaves out or does not show.
func harmless(cell string) string {
	shown := strings.TrimLeftFunc(cell, unseen)
	first, _ := utf8.DecodeRuneInString(shown)
	if shown != "" && strings.ContainsRune(formulaSigns, first) || cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		return "'" + cell
	}

	return cell
}

// unseen reports whether a spreadsheet may leave a character out at the beginning of a
// cell: blanks, controls, marks of direction and of byte order, and what has no shape of
// its own, as well as bytes that are no text.
func unseen(r rune) bool {
	return r == utf8.RuneError || unicode.IsSpace(r) ||
		unicode.In(r, unicode.C, unicode.Z, unicode.M, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
