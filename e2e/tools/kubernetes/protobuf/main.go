// Command protobuf prints shared/src/api/protobuf/tables/generated.rs: numbers, types and JSON names of the fields in
// fields.go, from the struct tags of upstream's types. Upstream's go-to-protobuf writes generated.proto from the same tags.
package main

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	text, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "protobuf:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

func generate() (string, error) {
	var text strings.Builder
	text.WriteString(`//! Tables of the fields in e2e/tools/kubernetes/protobuf/fields.go. Written by ` + "`make protobuf`" + `; do not edit.

use super::{Kind, Table, absent, field, omitted, table};

/// The table of each kind, by its apiVersion and name.
pub(crate) static KINDS: &[(&str, &str, &Table)] = &[
`)
	for _, kind := range kinds {
		fmt.Fprintf(&text, "    (%q, %q, &%s),\n", kind.version, kind.object.Name(), static(kind.object))
	}
	text.WriteString("];\n")
	for _, message := range messages {
		rows, err := message.rows()
		if err != nil {
			return "", fmt.Errorf("%s: %w", message.object, err)
		}
		name := message.object.Name()
		fmt.Fprintf(&text, "\npub(crate) static %s: Table = table(%q, &[\n", static(message.object), name)
		for _, row := range rows {
			fmt.Fprintf(&text, "    %s,\n", row)
		}
		text.WriteString("]);\n")
	}
	return text.String(), nil
}

// rows are the calls that make the rows of a table: by number, and then those of absent fields.
func (m message) rows() ([]string, error) {
	wanted, absent := strings.Fields(m.fields), strings.Fields(m.absent)
	var fields []field
	for i := range m.object.NumField() {
		field, err := read(m.object.Field(i))
		if err != nil {
			return nil, err
		}
		if slices.Contains(absent, field.name) {
			return nil, fmt.Errorf("%s is not absent", field.name)
		}
		if at := slices.Index(wanted, field.name); at >= 0 {
			wanted = slices.Delete(wanted, at, at+1)
			fields = append(fields, field)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("no such fields: %v", wanted)
	}
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.number, b.number) })
	var rows []string
	for _, field := range fields {
		row, err := field.row()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.name, err)
		}
		rows = append(rows, row)
	}
	for _, name := range absent {
		rows = append(rows, fmt.Sprintf("absent(%q)", name))
	}
	return rows, nil
}

// field is what the tags of a struct's field say.
type field struct {
	of     reflect.Type
	number int
	name   string
	// options are those of JSON.
	options []string
	inline  bool
}

// read reads the tags. A field that is not on the wire has no name: the TypeMeta of an object, which is in the envelope.
func read(of reflect.StructField) (field, error) {
	tag, ok := of.Tag.Lookup("protobuf")
	if !ok {
		return field{}, nil
	}
	var number int
	if _, err := fmt.Sscanf(tag[strings.Index(tag, ",")+1:], "%d,", &number); err != nil {
		return field{}, fmt.Errorf("%s: number in %q: %w", of.Name, tag, err)
	}
	name, options, _ := strings.Cut(of.Tag.Get("json"), ",")
	inline := name == ""
	if inline {
		_, name, _ = strings.Cut(tag, ",name=")
		name, _, _ = strings.Cut(name, ",")
		if name == "" {
			name = of.Name
		}
	}
	return field{of.Type, number, name, strings.Split(options, ","), inline}, nil
}

func (f field) row() (string, error) {
	kind, err := kindOf(f.of)
	if f.inline {
		kind = strings.Replace(kind, "Message", "Inline", 1)
	}
	constructor := "field"
	if f.omitsZero() {
		constructor = "omitted"
	}
	return fmt.Sprintf("%s(%d, %q, %s)", constructor, f.number, f.name, kind), err
}

// omitsZero tells whether JSON omits a zero that the wire has. The wire has no nil, and omitempty omits no struct.
func (f field) omitsZero() bool {
	switch f.of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return false
	case reflect.Struct:
		return slices.Contains(f.options, "omitzero")
	default:
		return slices.Contains(f.options, "omitempty") || slices.Contains(f.options, "omitzero")
	}
}

// kindOf is the Kind of a type.
func kindOf(of reflect.Type) (string, error) {
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[metav1.Time]():
		return "Kind::Time", nil
	case kind == reflect.Pointer:
		return kindOf(of.Elem())
	case kind == reflect.Bool:
		return "Kind::Bool", nil
	case kind == reflect.Int32, kind == reflect.Int64:
		return "Kind::Int", nil
	case kind == reflect.String:
		return "Kind::Text", nil
	case kind == reflect.Map && of.Key().Kind() == reflect.String && of.Elem().Kind() == reflect.String:
		return "Kind::Map", nil
	case kind == reflect.Slice:
		element, err := kindOf(of.Elem())
		return "Kind::List(&" + element + ")", err
	case slices.ContainsFunc(messages, func(m message) bool { return m.object == of }):
		return "Kind::Message(&" + static(of) + ")", nil
	default:
		return "", fmt.Errorf("%s has neither listed fields nor a Kind", of)
	}
}

var word = regexp.MustCompile("([a-z0-9])([A-Z])")

// static is the name of a type's table.
func static(object reflect.Type) string {
	return strings.ToUpper(word.ReplaceAllString(object.Name(), "${1}_${2}"))
}
