package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 1 << 20

// file applies the YAML file. It returns false when nothing in it could be read,
// so that what is missing cannot be told.
func (l *loader) file(path string, content []byte) bool {
	if path == "" && content == nil {
		return true
	}
	at := place{source: path}
	if path == "" {
		at.source = "file"
	}
	if content == nil {
		var err error
		if content, err = readFile(path); err != nil {
			l.addError(at, err)
			return false
		}
	}
	root, at, err := parse(at, content)
	if err != nil {
		l.addError(at, err)
		return false
	}
	w := &walker{loader: l, source: at.source}
	w.findKeys(root, "")
	w.section(root, "")
	return true
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(err)
	}
	return b, nil
}

// unreadable takes the path out of the error: the place names it already.
func unreadable(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return wrong("", "cannot be read: %v", err)
}

// parse reads the one document of the file. On an error the place is where it is.
func parse(at place, content []byte) (*yaml.Node, place, error) {
	if len(content) > maxFile {
		return nil, at, wrong("", "is larger than 1 MiB")
	}
	if i := badText(content); i >= 0 {
		at.line, at.column = position(content, i)
		return nil, at, wrong("save it as plain UTF-8 text", "is not UTF-8 text")
	}
	documents, err := yaml.NewLoader(bytes.NewReader(content))
	if err != nil {
		return nil, at, wrong("", "cannot be read as YAML")
	}
	var first, second yaml.Node
	if err := documents.Load(&first); errors.Is(err, io.EOF) {
		return nil, at, wrong("leave the file out, or start from the example", "is empty")
	} else if err != nil {
		return nil, at.of(err), syntax(err)
	}
	switch err := documents.Load(&second); {
	case err == nil:
		at.line, at.column = second.Line, second.Column
		return nil, at, wrong("keep one and remove the --- before the others", "holds several documents")
	case !errors.Is(err, io.EOF):
		return nil, at.of(err), syntax(err)
	}
	root := &first
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	return root, at, nil
}

func (at place) of(err error) place {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		at.line, at.column = le.Mark.Line, le.Mark.Column
	}
	return at
}

// syntax says what the parser says, except where that repeats the file's text: it
// does so between quotes, and with names that could be anything.
func syntax(err error) error {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return wrong("", "cannot be read as YAML")
	}
	if strings.Contains(le.Message, "anchor") || looksSecret(le.Message) {
		return wrong(noAlias+"; "+noAliasHint, "cannot be read as YAML")
	}
	message := le.Message
	if le.ContextMsg != "" {
		message = le.ContextMsg + ", " + message
	}
	return wrong("check indentation and quotes here and in the line before", "cannot be read as YAML: %.200s", message)
}

// badText is the offset of the first byte that is no UTF-8 or no text, else -1.
func badText(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return i
		}
		i += n
	}
	return -1
}

func position(b []byte, offset int) (line, column int) {
	before := b[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[start:])
}

// place is where a node stands.
func (w *walker) place(n *yaml.Node, field string) place {
	return place{
		source: w.source, line: n.Line, column: n.Column, field: field,
		origin: fmt.Sprintf("%s:%d", w.source, n.Line),
	}
}
