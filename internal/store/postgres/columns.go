package postgres

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"redrive/internal/store/db"
)

// list is a statement with a list of VALUES, as it is sent: with one array for each column of the
// list. The server reads a few arrays in less time than hundreds of arguments, and one statement
// serves for any number of rows, so that it is prepared once.
type list struct {
	text    string // empty: there is no list that can be sent so
	columns int
}

// newList rewrites a statement whose list of VALUES has so many rows, all of placeholders.
func newList(query string, rows int) list {
	_, first, _ := strings.Cut(query, "VALUES (")
	first, _, _ = strings.Cut(first, ")")

	columns := strings.Count(first, "?")
	if columns == 0 {
		return list{}
	}

	row := "(?" + strings.Repeat(", ?", columns-1) + ")"

	head, tail, found := strings.Cut(query, "VALUES "+row+strings.Repeat(", "+row, rows-1))
	if !found {
		return list{}
	}

	values := make([]string, columns)
	for i := range values {
		values[i] = fmt.Sprintf("unnest(?) AS column%d", i+1)
	}

	return list{translate(head + "SELECT " + strings.Join(values, ", ") + tail), columns}
}

// inColumns is the statement with one argument for each column of its list of VALUES. ok is false
// if it has no such list, or if the values of a column are not of one type.
func (c *conn) inColumns(sent db.Statement) (s statement, ok bool) {
	if sent.Rows == 0 {
		return s, false
	}

	l, known := c.lists[sent.Query]
	if !known {
		l = newList(sent.Query, sent.Rows)
		c.lists[sent.Query] = l
	}

	if l.text == "" {
		return s, false
	}

	// What comes before the list stays as it is.
	common := len(sent.Args) - sent.Rows*l.columns

	s, err := newStatement(sent.Want, l.text, sent.Args[:common])
	if err != nil {
		return s, false
	}

	for i := range l.columns {
		oid, array := encodeColumn(sent.Args[common+i:], l.columns)
		if array == nil {
			return s, false
		}

		s.types, s.args = append(s.types, oid), append(s.args, array)
	}

	s.listed = true

	return s, true
}

// encodeColumn is the array of the first argument and of those below it, in rows of so many columns.
// It is nil if they are not of one type.
func encodeColumn(args []any, columns int) (oid uint32, value []byte) {
	array := newArray((len(args) + columns - 1) / columns)

	of := uint32(typeUnknown)
	for i := 0; i < len(args); i += columns {
		is, ok := array.add(args[i])
		if !ok || of != typeUnknown && is != typeUnknown && is != of {
			return 0, nil
		}

		of = max(of, is) // a NULL is of any type
	}

	if of == typeUnknown {
		return 0, nil
	}

	return arraysOf[of], array.of(of)
}

// array is an array as the server stores it: a header, and the values, each behind its length.
type array struct {
	bytes []byte
	n     int
	nulls bool
}

// sizeOfHeader is the size of the header: how many dimensions, whether there are NULLs, the type,
// the number of values, and the number of the first one.
const sizeOfHeader = 5 * 4

// newArray has room for so many values.
func newArray(n int) *array { return &array{bytes: make([]byte, sizeOfHeader, sizeOfHeader+12*n)} }

// of is the array of values of a type.
func (a *array) of(oid uint32) []byte {
	header := binary.BigEndian.AppendUint32(a.bytes[:0], 1)
	if a.nulls {
		header = binary.BigEndian.AppendUint32(header, 1)
	} else {
		header = binary.BigEndian.AppendUint32(header, 0)
	}

	header = binary.BigEndian.AppendUint32(header, oid)
	header = binary.BigEndian.AppendUint32(header, uint32(a.n))
	binary.BigEndian.AppendUint32(header, 1)

	return a.bytes
}

// add adds an argument, and returns its type. ok is false if there are no arrays of such a thing.
func (a *array) add(arg any) (oid uint32, ok bool) {
	switch arg := arg.(type) {
	case nil:
		a.null()
		return typeUnknown, true
	case int64:
		a.number(arg)
		return typeInt8, true
	case int:
		a.number(int64(arg))
		return typeInt8, true
	case bool:
		if arg {
			a.number(1)
		} else {
			a.number(0)
		}
		return typeInt8, true
	case string:
		a.text(arg)
		return typeText, true
	case []byte:
		if arg == nil {
			a.null()
		} else {
			a.size(len(arg))
			a.bytes = append(a.bytes, arg...)
		}
		return typeBytes, true
	case float64:
		a.size(8)
		a.bytes = binary.BigEndian.AppendUint64(a.bytes, math.Float64bits(arg))
		return typeFloat8, true
	}

	// Another kind of number or text, or what makes one of itself.
	plain, err := driver.DefaultParameterConverter.ConvertValue(arg)
	if err != nil {
		return typeUnknown, false
	}

	switch plain.(type) {
	case nil, int64, bool, string, []byte, float64:
		return a.add(plain)
	}

	return typeUnknown, false
}

func (a *array) size(n int) {
	a.n++
	a.bytes = binary.BigEndian.AppendUint32(a.bytes, uint32(n))
}

func (a *array) number(n int64) {
	a.size(8)
	a.bytes = binary.BigEndian.AppendUint64(a.bytes, uint64(n))
}

func (a *array) text(text string) {
	a.size(len(text))
	a.bytes = append(a.bytes, text...)
}

func (a *array) null() {
	a.nulls = true
	a.size(-1)
}
