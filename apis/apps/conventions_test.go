// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apps_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestConventions holds the wire types to the API conventions of Kubernetes.
// Each rule says in a sentence what it wants.
func TestConventions(t *testing.T) {
	api := readAPI(t, "v1alpha1", "v1beta1")

	for _, f := range api.fields {
		for _, rule := range rules() {
			if complaint := rule(api, f); complaint != "" {
				t.Errorf("%s: %s.%s %s", f.position, f.owner, f.goName, complaint)
			}
		}
	}

	if len(api.fields) < 80 {
		t.Errorf("found %d fields: the rules were not applied to all types", len(api.fields))
	}
}

// rule returns what is wrong with a field, or nothing.
type rule func(*api, field) string

func rules() []rule {
	return []rule{
		jsonName, documented, optionalOrRequired, omitted, listType, numbers, units, absence, enums,
	}
}

func jsonName(_ *api, f field) string {
	if f.embedded {
		return ""
	}

	// Of the capitals that a name begins with, the last one begins the second word, if there is one.
	capitals := max(len(f.goName)-len(strings.TrimLeft(f.goName, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))-1, 1)
	if want := strings.ToLower(f.goName[:capitals]) + f.goName[capitals:]; f.name != want {
		return "must have the JSON name " + want + ", found " + f.name
	}

	return ""
}

func documented(_ *api, f field) string {
	if !strings.HasPrefix(f.doc, f.name+" ") {
		return "needs a comment that begins with " + f.name
	}

	return ""
}

func optionalOrRequired(_ *api, f field) string {
	if f.has("+optional") == f.has("+required") {
		return "must be marked as one of +optional and +required"
	}

	return ""
}

func omitted(a *api, f field) string {
	switch {
	case a.isStruct(f) && !strings.Contains(f.tag, ",omitzero"):
		return "is a struct and must be omitzero: omitempty never leaves out a struct"
	case f.has("+optional") && !strings.Contains(f.tag, ",omit"):
		return "is optional and must be omitempty or omitzero"
	}

	return ""
}

func listType(_ *api, f field) string {
	_, isList := f.typ.(*ast.ArrayType)

	switch {
	case f.name == "items" && strings.HasSuffix(f.owner, "List"):
		return ""
	case isList && f.marker("+listType=") == "":
		return "is a list and needs +listType"
	case f.marker("+listType=") == "map" && f.marker("+listMapKey=") == "":
		return "is a list of type map and needs +listMapKey"
	}

	return ""
}

func numbers(_ *api, f field) string {
	switch f.base() {
	case "int", "int8", "int16", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "Duration":
		return "must be int32 or int64, found " + f.base()
	}

	return ""
}

func units(_ *api, f field) string {
	if strings.HasSuffix(f.name, "Seconds") && !strings.Contains(f.doc, "seconds") {
		return "must say in its comment that it counts seconds"
	}

	return ""
}

// absence applies to plain values of the spec: of an absent struct, the fields
// speak.
func absence(a *api, f field) string {
	_, isList := f.typ.(*ast.ArrayType)
	_, isMap := f.typ.(*ast.MapType)
	isStatus := strings.HasSuffix(f.owner, "Status") || f.owner == "Blocker"
	isPlain := len(a.values(f)) > 0 || slices.Contains([]string{"int32", "int64", "bool", "string", "IntOrString"}, f.base())

	if isList || isMap || isStatus || !isPlain || f.has("+required") {
		return ""
	}

	for _, words := range []string{"Defaults to ", "Absent, ", "not acted on in this release"} {
		if strings.Contains(f.doc, words) {
			return ""
		}
	}

	return `must say what its absence means: "Defaults to ..." or "Absent, ..."`
}

// enums wants every accepted value to be a documented constant and to be
// explained where the field is.
func enums(a *api, f field) string {
	accepted := a.values(f)

	if constants, ours := a.enums[f.base()]; ours && !slices.Equal(accepted, constants) {
		return "has the constants " + strings.Join(constants, ", ") + " but accepts " + strings.Join(accepted, ", ")
	}

	for _, value := range accepted {
		if !strings.Contains(f.doc, value+":") {
			return "must explain the value " + value + " in its comment"
		}
	}

	return ""
}

// api is what the rules read.
type api struct {
	fields []field
	// structs are the names of the struct types.
	structs map[string]bool
	// enums are the values of the constants of each named string type.
	enums map[string][]string
	// accepted are the values that the Enum marker of each type names.
	accepted map[string][]string
}

// field is one field of a wire type.
type field struct {
	owner, goName, name, tag, doc string
	markers                       []string
	typ                           ast.Expr
	embedded                      bool
	position                      token.Position
}

func (f field) has(marker string) bool { return slices.Contains(f.markers, marker) }

// marker returns what follows a prefix such as "+listType=".
func (f field) marker(prefix string) string {
	for _, marker := range f.markers {
		if value, found := strings.CutPrefix(marker, prefix); found {
			return value
		}
	}

	return ""
}

// base returns the name of the type without pointer, list, map and package.
func (f field) base() string {
	typ := f.typ
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.ArrayType:
			typ = t.Elt
		case *ast.MapType:
			typ = t.Value
		case *ast.SelectorExpr:
			return t.Sel.Name
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// isStruct reports whether the field holds a struct, not a pointer to one. The
// types of other packages whose name ends in Type or Status are strings, and PullPolicy.
func (a *api) isStruct(f field) bool {
	switch t := f.typ.(type) {
	case *ast.SelectorExpr:
		return !strings.HasSuffix(t.Sel.Name, "Type") && !strings.HasSuffix(t.Sel.Name, "Status") && t.Sel.Name != "PullPolicy"
	case *ast.Ident:
		return a.structs[t.Name]
	default:
		return false
	}
}

// values returns what the schema accepts of an enumeration, by the marker of
// the field or of its type.
func (a *api) values(f field) []string {
	if marker := f.marker("+kubebuilder:validation:Enum="); marker != "" {
		return strings.Split(marker, ";")
	}

	return a.accepted[f.base()]
}

func readAPI(t *testing.T, folders ...string) *api {
	t.Helper()

	result := &api{structs: map[string]bool{}, enums: map[string][]string{}, accepted: map[string][]string{}}

	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*_*.go"))
		if err != nil {
			t.Fatal(err)
		}

		set := token.NewFileSet()

		for _, path := range files {
			if !strings.HasSuffix(path, "_types.go") && !strings.HasSuffix(path, "_status.go") {
				continue
			}

			file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}

			result.read(set, file)
		}
	}

	return result
}

func (a *api) read(set *token.FileSet, file *ast.File) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}

		for _, spec := range general.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				a.readType(set, s, general.Doc)
			case *ast.ValueSpec:
				a.readConstant(s)
			}
		}
	}
}

func (a *api) readType(set *token.FileSet, spec *ast.TypeSpec, doc *ast.CommentGroup) {
	if marker := (field{markers: markers(doc)}).marker("+kubebuilder:validation:Enum="); marker != "" {
		a.accepted[spec.Name.Name] = strings.Split(marker, ";")
	}

	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}

	a.structs[spec.Name.Name] = true

	for _, f := range structure.Fields.List {
		if f.Tag == nil {
			continue
		}

		raw, _ := strconv.Unquote(f.Tag.Value)
		tag := reflect.StructTag(raw).Get("json")
		name, options, _ := strings.Cut(tag, ",")

		if options == "inline" {
			continue
		}

		read := field{
			owner: spec.Name.Name, name: name, tag: tag, typ: f.Type, embedded: len(f.Names) == 0,
			doc: strings.Join(strings.Fields(f.Doc.Text()), " "), markers: markers(f.Doc), position: set.Position(f.Pos()),
		}
		if !read.embedded {
			read.goName = f.Names[0].Name
		}

		a.fields = append(a.fields, read)
	}
}

func (a *api) readConstant(spec *ast.ValueSpec) {
	typ, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) != 1 {
		return
	}

	if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
		value, _ := strconv.Unquote(literal.Value)
		a.enums[typ.Name] = append(a.enums[typ.Name], value)
	}
}

func markers(doc *ast.CommentGroup) []string {
	var found []string

	if doc != nil {
		for _, comment := range doc.List {
			if text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")); strings.HasPrefix(text, "+") {
				found = append(found, text)
			}
		}
	}

	return found
}

// TestConstantsAreUnique checks that no two names of labels, annotations,
// conditions or reasons are spelled the same by mistake.
func TestConstantsAreUnique(t *testing.T) {
	key := regexp.MustCompile(`^[a-z.]+/[a-z-]*$`) // nothing after the slash: a prefix

	for _, file := range []string{"v1beta1/labels.go", "v1beta1/conditions.go", "v1beta1/cloneset_conditions.go"} {
		seen := map[string]string{}

		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}

			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}

			name, value := spec.Names[0].Name, literal.Value
			if other, taken := seen[value]; taken {
				t.Errorf("%s: %s and %s are both %s", file, name, other, value)
			}

			seen[value] = name

			if unquoted := strings.Trim(value, `"`); strings.Contains(unquoted, "/") && !key.MatchString(unquoted) {
				t.Errorf("%s: %s is %s, want a domain, a slash and lower case words", file, name, value)
			}

			return true
		})

		if len(seen) == 0 {
			t.Errorf("%s: found no constants", file)
		}
	}

}
