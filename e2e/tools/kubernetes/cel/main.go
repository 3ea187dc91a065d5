// Command cel prints what the checker of cel-check is compared with, from upstream's own environment of
// ValidatingAdmissionPolicies:
//
//	cel declarations       its functions and types
//	cel rows SCHEMA <ROWS  the rows of a test with what upstream's checker says about each
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	switch {
	case len(args) == 1 && args[0] == "declarations":
		env, err := base.Env(environment.StoredExpressions)
		if err != nil {
			return err
		}
		printDeclarations(env)
		return nil
	case len(args) == 2 && args[0] == "rows":
		return printRows(base, args[1], os.Stdin)
	default:
		return fmt.Errorf("usage: cel declarations | cel rows SCHEMA <ROWS")
	}
}

func printDeclarations(env *cel.Env) {
	for _, variable := range env.Variables() {
		fmt.Printf("type %s %s\n", variable.Name(), typeText(variable.Type()))
	}
	functions := env.Functions()
	named := map[string]bool{}
	for _, function := range functions {
		for _, overload := range function.OverloadDecls() {
			for _, t := range append(overload.ArgTypes(), overload.ResultType()) {
				collectNames(t, named)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if value, found := env.CELTypeProvider().FindIdent(name); found {
			fmt.Printf("type %s type(%s)\n", name, typeText(value.(*cel.Type)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		for _, overload := range functions[name].OverloadDecls() {
			fmt.Println(overloadText(name, overload))
		}
	}
}

// collectNames finds the types that are neither the standard library's nor parameters.
func collectNames(t *cel.Type, names map[string]bool) {
	if t.Kind() == types.OpaqueKind || t.Kind() == types.StructKind {
		names[t.TypeName()] = true
	}
	for _, parameter := range t.Parameters() {
		collectNames(parameter, names)
	}
}

func overloadText(name string, overload *decls.OverloadDecl) string {
	style := "global"
	if overload.IsMemberFunction() {
		style = "member"
	}
	var args []string
	for _, arg := range overload.ArgTypes() {
		args = append(args, typeText(arg))
	}
	return fmt.Sprintf("%s %s (%s) %s", style, name, strings.Join(args, ", "), typeText(overload.ResultType()))
}

// typeText is cel-go's text of a type, with a mark on type parameters and on opaque types.
func typeText(t *cel.Type) string {
	switch t.Kind() {
	case types.TypeParamKind:
		return "<" + t.TypeName() + ">"
	case types.OpaqueKind:
		return "opaque " + parameters(t.TypeName(), t)
	case types.ListKind, types.MapKind, types.TypeKind:
		return parameters(t.TypeName(), t)
	default:
		return cel.FormatCELType(t)
	}
}

func parameters(name string, t *cel.Type) string {
	var texts []string
	for _, parameter := range t.Parameters() {
		texts = append(texts, typeText(parameter))
	}
	if len(texts) == 0 {
		return name
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

// printRows copies a test's rows. A row is a line "=== " with an expression as a JSON string, and the answer below it.
// A line "+++ " declares a variable for the rows that follow it.
func printRows(base *environment.EnvSet, schemaFile string, rows io.Reader) error {
	object, err := readSchema(schemaFile)
	if err != nil {
		return err
	}
	variables := map[string]*cel.Type{}
	scanner := bufio.NewScanner(rows)
	scanner.Buffer(nil, math.MaxInt32)
	for scanner.Scan() {
		line := scanner.Text()
		switch {
		case strings.HasPrefix(line, "# "):
			fmt.Println(line)
		case strings.HasPrefix(line, "+++ "):
			fmt.Println(line)
			name, text, _ := strings.Cut(line[len("+++ "):], " ")
			variables[name] = parseType(text)
		case strings.HasPrefix(line, "=== "):
			fmt.Println(line)
			var expression string
			if err := json.Unmarshal([]byte(line[len("=== "):]), &expression); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			env, err := environmentOf(base, object, variables)
			if err != nil {
				return err
			}
			fmt.Println(answer(env, expression))
		}
	}
	return scanner.Err()
}

func answer(env *cel.Env, expression string) (text string) {
	defer func() {
		// Validators panic about an optional element of type dyn.
		if reason := recover(); reason != nil {
			text = fmt.Sprintf("panic: %v", reason)
		}
	}()
	ast, issues := env.Compile(expression)
	if issues != nil {
		return issues.String()
	}
	return cel.FormatCELType(ast.OutputType())
}

// environmentOf does as buildEnvSet in upstream's typechecking.go, which is not exported.
func environmentOf(base *environment.EnvSet, object *apiservercel.DeclType, variables map[string]*cel.Type) (*cel.Env, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	options := []cel.EnvOption{
		cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		cel.Variable(plugincel.RequestVarName, request.CelType()),
		cel.Variable(plugincel.ObjectVarName, object.CelType()),
		cel.Variable(plugincel.OldObjectVarName, object.CelType()),
		cel.Variable(plugincel.ParamsVarName, cel.DynType),
		cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
	}
	for name, t := range variables {
		options = append(options, cel.Variable(name, t))
	}
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        options,
		DeclTypes:         []*apiservercel.DeclType{namespace, request, object},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.StoredExpressions)
}

func readSchema(file string) (*apiservercel.DeclType, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	schema := new(spec.Schema)
	if err := json.Unmarshal(content, schema); err != nil {
		return nil, err
	}
	declared := common.SchemaDeclType(&openapi.Schema{Schema: schema}, true)
	return declared.MaybeAssignTypeName("Object0"), nil
}

// parseType reads the types that rows declare: simple ones, and lists, maps and optional ones of these.
func parseType(text string) *cel.Type {
	if inner, found := strings.CutPrefix(text, "opaque optional_type("); found {
		return cel.OptionalType(parseType(strings.TrimSuffix(inner, ")")))
	}
	if inner, found := strings.CutPrefix(text, "list("); found {
		return cel.ListType(parseType(strings.TrimSuffix(inner, ")")))
	}
	if inner, found := strings.CutPrefix(text, "map("); found {
		key, value, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ", ")
		return cel.MapType(parseType(key), parseType(value))
	}
	for _, simple := range []*cel.Type{cel.BoolType, cel.BytesType, cel.DoubleType, cel.DurationType, cel.DynType,
		cel.IntType, cel.NullType, cel.StringType, cel.TimestampType, cel.UintType} {
		if cel.FormatCELType(simple) == text {
			return simple
		}
	}
	panic("unknown type " + text)
}
