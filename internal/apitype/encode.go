package apitype

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"redrive/internal/wire"
)

// Encode writes an object as encoding/json does, but for payloads, whose bytes stay
// as they are. Several values are written as one object with the members of all of
// them; a nil value has none.
func Encode(parts ...any) []byte {
	b := []byte{'{'}
	for _, part := range parts {
		if part != nil {
			b = appendMembers(b, reflect.ValueOf(part))
		}
	}

	return append(b, '}')
}

// Columns are the names of all members of a flat object, as the columns of a table.
func Columns(row any) []string {
	members := Members(reflect.TypeOf(row))
	all := make([]string, len(members))
	for i, m := range members {
		all[i] = m.Name
	}

	return all
}

// Cells are the values of all members of a flat object, as the cells of a table. A
// member that is left out is an empty cell.
func Cells(row any) []string {
	value := reflect.ValueOf(row)
	members := Members(value.Type())

	all := make([]string, len(members))
	for i, m := range members {
		field := value.FieldByIndex(m.Index)
		if m.leftOut(field) {
			continue
		}

		switch x := field.Interface().(type) {
		case Time:
			all[i] = wire.FormatTime(x.Time)
		case Duration:
			all[i] = wire.FormatDuration(time.Duration(x))
		default:
			all[i] = fmt.Sprint(x)
		}
	}

	return all
}

// Member is a member of an object, and the field that holds it.
type Member struct {
	Name  string
	Type  reflect.Type
	Index []int // of the field, through the structs that it is embedded in
	Tag   reflect.StructTag

	omitZero, omitEmpty bool
}

// Optional reports whether the member may be missing.
func (m Member) Optional() bool { return m.omitZero || m.omitEmpty }

// leftOut reports whether a member is left out for its value.
func (m Member) leftOut(v reflect.Value) bool {
	if m.omitEmpty {
		return v.Len() == 0
	}

	if !m.omitZero {
		return false
	}

	if zero, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return zero.IsZero()
	}

	return v.IsZero()
}

// membersByType has the members of the types that were seen before.
var membersByType sync.Map

// Members lists the members of an object of a type, in their order. Those of an
// embedded struct are the object's own.
func Members(t reflect.Type) []Member {
	if found, ok := membersByType.Load(t); ok {
		return found.([]Member)
	}

	var all []Member
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			continue // its fields come next
		}

		all = append(all, Member{
			Name:      name,
			Type:      f.Type,
			Index:     f.Index,
			Tag:       f.Tag,
			omitZero:  options == "omitzero",
			omitEmpty: options == "omitempty",
		})
	}

	membersByType.Store(t, all)

	return all
}

// appendMembers appends the members of an object that are not left out.
func appendMembers(b []byte, object reflect.Value) []byte {
	for _, m := range Members(object.Type()) {
		field := object.FieldByIndex(m.Index)
		if m.leftOut(field) {
			continue
		}

		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}

		b = append(b, '"')
		b = append(b, m.Name...)
		b = append(b, '"', ':')
		b = appendValue(b, field)
	}

	return b
}

// appendValue appends a value. What can hold a payload is walked through; everything
// else is left to encoding/json.
func appendValue(b []byte, v reflect.Value) []byte {
	if payload, ok := v.Interface().(Payload); ok && payload != nil {
		return append(b, payload...)
	}

	_, writesItself := v.Interface().(json.Marshaler)
	switch kind := v.Kind(); {
	case kind == reflect.Pointer && !v.IsNil() && !writesItself:
		return appendValue(b, v.Elem())
	case kind == reflect.Struct && !writesItself:
		return append(appendMembers(append(b, '{'), v), '}')
	case kind == reflect.Slice && !v.IsNil() && v.Type().Elem().Kind() == reflect.Struct:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}

			b = appendValue(b, v.Index(i))
		}

		return append(b, ']')
	}

	data, err := json.Marshal(v.Interface())
	if err != nil { // unreachable: answers hold strings, numbers and valid JSON
		panic(fmt.Sprintf("apitype.Encode(%s): %v", v.Type(), err))
	}

	return append(b, data...)
}
