package xiaoqusync_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	maxFileLines     = 350
	maxFunctionLines = 70
)

type drawing struct {
	module    string
	rooms     map[string]room
	testTools []string      // rooms that every test may import
	toolless  []string      // but the tests of these
	confined  []confinement // third-party code that has its own rooms
}

type room struct {
	doors []string
	tests []string
}

// confinement names the rooms that may import a third-party module, and those
// whose tests may as well.
type confinement struct {
	prefix string
	rooms  []string
	tests  []string
}

// source is one parsed file.
type source struct {
	name string // from the root, with slashes
	set  *token.FileSet
	tree *ast.File
}

func (s source) room() string {
	if dir := path.Dir(s.name); dir != "." {
		return dir
	}
	return ""
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) line(pos token.Pos) int { return s.set.Position(pos).Line }

func (s source) breach(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.name, s.line(pos), fmt.Sprintf(format, args...))
}

// parseTree parses every Go file below root but testdata, hidden folders and
// nested modules.
func parseTree(root fs.FS) ([]source, error) {
	var files []source
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := path.Base(name)
			_, nested := fs.Stat(root, path.Join(name, "go.mod"))
			if name != "." && (base == "testdata" || strings.HasPrefix(base, ".") || nested == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		files = append(files, source{name, set, tree})
		return err
	})
	return files, err
}

// inspect lists every breach of the drawing and of the measures.
func inspect(d drawing, files []source) []string {
	var breaches []string
	for _, s := range files {
		if _, drawn := d.rooms[s.room()]; !drawn {
			breaches = append(breaches, s.breach(s.tree.Package, "folder %q is no room of the drawing in rooms_test.go", s.room()))
			continue
		}
		for _, imported := range s.tree.Imports {
			breaches = append(breaches, d.inspectImport(s, imported)...)
		}
		breaches = append(breaches, inspectMeasures(s)...)
		if !s.test() {
			breaches = append(breaches, inspectComments(s)...)
		}
	}
	return append(breaches, inspectRoomDocs(files)...)
}

func (d drawing) inspectImport(s source, imported *ast.ImportSpec) []string {
	target, err := strconv.Unquote(imported.Path.Value)
	if err != nil {
		return []string{s.breach(imported.Pos(), "import %s can't be read", imported.Path.Value)}
	}
	if target == "sync" && s.room() == "sync" {
		return []string{s.breach(imported.Pos(), `imports the standard library's "sync" inside the room sync, where the word means us; use errgroup or channels`)}
	}
	for _, c := range d.confined {
		free := slices.Contains(c.rooms, s.room()) || s.test() && slices.Contains(c.tests, s.room())
		if within(target, c.prefix) && !free {
			return []string{s.breach(imported.Pos(), "imports %s, which is confined to %s", target, strings.Join(c.rooms, ", "))}
		}
	}
	if !within(target, d.module) {
		return nil
	}
	return d.inspectDoor(s, imported, strings.TrimPrefix(strings.TrimPrefix(target, d.module), "/"))
}

func (d drawing) inspectDoor(s source, imported *ast.ImportSpec, target string) []string {
	var breaches []string
	if target == "sync" && imported.Name != nil {
		breaches = append(breaches, s.breach(imported.Pos(), "imports sync under the name %s; it is imported unaliased", imported.Name.Name))
	}
	doors := slices.Clone(d.rooms[s.room()].doors)
	if s.test() {
		doors = append(doors, s.room())
		doors = append(doors, d.rooms[s.room()].tests...)
		if !slices.Contains(d.toolless, s.room()) {
			doors = append(doors, d.testTools...)
		}
	}
	if slices.Contains(doors, target) {
		return breaches
	}
	allowed := "none"
	if len(doors) > 0 {
		allowed = strings.Join(doors, ", ")
	}
	return append(breaches, s.breach(imported.Pos(), "imports %s; the doors of %q are: %s", target, s.room(), allowed))
}

// within tells that the import path target is the module prefix or below it,
// whatever its major version.
func within(target, prefix string) bool {
	return target == prefix || strings.HasPrefix(target, prefix+"/")
}

func inspectMeasures(s source) []string {
	var breaches []string
	if lines := s.line(s.tree.FileEnd - 1); lines > maxFileLines {
		breaches = append(breaches, s.breach(s.tree.Package, "the file has %d lines, at most %d", lines, maxFileLines))
	}
	for _, decl := range s.tree.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if lines := s.line(f.End()) - s.line(f.Pos()) + 1; lines > maxFunctionLines {
			breaches = append(breaches, s.breach(f.Pos(), "%s has %d lines, at most %d", f.Name.Name, lines, maxFunctionLines))
		}
		if f.Name.Name == "init" && f.Recv == nil {
			breaches = append(breaches, s.breach(f.Pos(), "there is no init() in this house"))
		}
	}
	return breaches
}

// inspectComments finds exported names without a doc comment. A comment on a
// group of constants or variables counts for all of them; methods that every
// reader of Go knows need none, as revive has it.
func inspectComments(s source) []string {
	wellKnown := []string{"Error", "Unwrap", "String"}
	var breaches []string
	missing := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
			breaches = append(breaches, s.breach(name.Pos(), "%s has no doc comment", name.Name))
		}
	}
	for _, decl := range s.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || exportedReceiver(d.Recv) && !slices.Contains(wellKnown, d.Name.Name) {
				missing(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					missing(spec.Name, spec.Doc, d.Doc)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						missing(name, spec.Doc, spec.Comment, d.Doc)
					}
				}
			}
		}
	}
	return breaches
}

func exportedReceiver(fields *ast.FieldList) bool {
	exported := false
	ast.Inspect(fields.List[0].Type, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			exported = exported || name.IsExported()
		}
		return true
	})
	return exported
}

// inspectRoomDocs finds rooms with code and without a doc.go that says what they are.
func inspectRoomDocs(files []source) []string {
	first, documented := map[string]source{}, map[string]bool{}
	for _, s := range files {
		if s.test() {
			continue
		}
		if _, seen := first[s.room()]; !seen {
			first[s.room()] = s
		}
		if path.Base(s.name) == "doc.go" && s.tree.Doc != nil {
			documented[s.room()] = true
		}
	}
	var breaches []string
	for name, s := range first {
		if !documented[name] {
			breaches = append(breaches, s.breach(s.tree.Package, "the room %q has no doc.go with a package comment", name))
		}
	}
	slices.Sort(breaches)
	return breaches
}
