package postgres

import (
	"bytes"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/store/db"
)

// The types of PostgreSQL in which values travel, by their numbers in its catalogue.
const (
	typeBool    = 16
	typeBytes   = 17
	typeInt8    = 20
	typeInt2    = 21
	typeInt4    = 23
	typeText    = 25
	typeFloat4  = 700
	typeFloat8  = 701
	typeNumeric = 1700
	typeUnknown = 0
)

// arraysOf are the types of arrays, by the type of their elements.
var arraysOf = map[uint32]uint32{typeInt8: 1016, typeText: 1009, typeBytes: 1001, typeFloat8: 1022}

// The formats in which arguments travel: bytes and arrays in that of the server, and all others
// as text.
const (
	asText   = 0
	asStored = 1
)

// formatOf is the format in which arguments of a type travel.
func formatOf(oid uint32) int16 {
	switch oid {
	case typeBytes, arraysOf[typeInt8], arraysOf[typeText], arraysOf[typeBytes], arraysOf[typeFloat8]:
		return asStored
	}

	return asText
}

// encode says in which type an argument travels, and how. The type follows from what it is in
// Go alone, so that PostgreSQL has nothing to guess. A bool is a number, as in all tables.
func encode(arg any) (oid uint32, value []byte, err error) {
	switch arg := arg.(type) {
	case nil:
		return typeUnknown, nil, nil
	case int64:
		return typeInt8, strconv.AppendInt(nil, arg, 10), nil
	case bool:
		if arg {
			return typeInt8, []byte{'1'}, nil
		}
		return typeInt8, []byte{'0'}, nil
	case string:
		return typeText, []byte(arg), nil
	case []byte:
		return typeBytes, arg, nil
	case float64:
		return typeFloat8, strconv.AppendFloat(nil, arg, 'g', -1, 64), nil
	case db.Numbers:
		array := newArray(len(arg))
		for _, n := range arg {
			array.number(n)
		}
		return arraysOf[typeInt8], array.of(typeInt8), nil
	case db.Texts:
		array := newArray(len(arg))
		for _, text := range arg {
			array.text(text)
		}
		return arraysOf[typeText], array.of(typeText), nil
	}

	// Another kind of number or text, or what makes one of itself.
	plain, err := driver.DefaultParameterConverter.ConvertValue(arg)
	if err != nil {
		return 0, nil, err
	}

	switch plain.(type) {
	case nil, int64, bool, string, []byte, float64:
		return encode(plain)
	}

	return 0, nil, fmt.Errorf("%T cannot be sent", arg)
}

// column is one of a result.
type column struct {
	name string
	oid  uint32
}

func columnsOf(result *pgconn.ResultReader) []column {
	fields := result.FieldDescriptions()
	all := make([]column, len(fields))
	for i, f := range fields {
		all[i] = column{f.Name, f.DataTypeOID}
	}

	return all
}

// decode reads a value of the column, which travels as text.
func (c column) decode(value []byte) (driver.Value, error) {
	if value == nil {
		return nil, nil
	}

	switch c.oid {
	case typeBool:
		return string(value) == "t", nil
	case typeInt8, typeInt4, typeInt2:
		return strconv.ParseInt(string(value), 10, 64)
	case typeNumeric: // what sum makes of numbers
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err == nil {
			return n, nil
		}
		return strconv.ParseFloat(string(value), 64)
	case typeFloat8, typeFloat4:
		return strconv.ParseFloat(string(value), 64)
	case typeBytes:
		return bytesOf(value)
	}

	return string(value), nil
}

// bytesOf reads bytes in either of the two formats in which the server writes them: in which one
// is a setting of the role (bytea_output).
func bytesOf(value []byte) ([]byte, error) {
	digits, inHex := bytes.CutPrefix(value, []byte(`\x`))
	if inHex {
		return hex.AppendDecode(make([]byte, 0, hex.DecodedLen(len(digits))), digits)
	}

	// A backslash stands before another one, or before three octal digits.
	text := string(value)
	all := make([]byte, 0, len(text))
	for text != "" {
		plain, escaped, found := strings.Cut(text, `\`)
		all = append(all, plain...)

		switch {
		case !found:
			return all, nil
		case strings.HasPrefix(escaped, `\`):
			all = append(all, '\\')
			text = escaped[1:]
		case len(escaped) < 3:
			return nil, fmt.Errorf("%q ends within an escaped byte", escaped)
		default:
			b, err := strconv.ParseUint(escaped[:3], 8, 8)
			if err != nil {
				return nil, err
			}

			all = append(all, byte(b))
			text = escaped[3:]
		}
	}

	return all, nil
}
