package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value opened by shape: what it holds is found by name or position, and what it is made of stays the
// sender's bytes. Nodes alias the text that they were parsed from.
type node struct {
	raw     jsontext.Value
	names   []string          // names in the sender's order, duplicates included, when an object was opened
	members map[string]node   // by name, the last of a duplicate wins
	items   []json.RawMessage // elements when an array was opened
}

// parse reads src, which must be one JSON value, and opens objects and arrays down to the given number of levels; deeper
// ones are checked and kept whole. Duplicate names and broken text inside strings pass: a record's faults are not the page's.
func parse(src []byte, levels int) (node, error) {
	p := parser{src: src, dec: jsontext.NewDecoder(bytes.NewBuffer(src),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	n, err := p.value(levels)
	if err != nil {
		return node{}, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return node{}, fmt.Errorf("text after the JSON value at byte %d", p.dec.InputOffset())
	}
	return n, nil
}

type parser struct {
	src []byte
	dec *jsontext.Decoder
}

func (p *parser) value(levels int) (node, error) {
	kind := p.dec.PeekKind()
	if levels == 0 || (kind != '{' && kind != '[') {
		raw, err := p.raw()
		return node{raw: raw}, err
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return node{}, err
	}
	start := p.dec.InputOffset() - 1
	var n node
	var err error
	if kind == '{' {
		err = p.object(&n, levels-1)
	} else {
		err = p.array(&n)
	}
	if err != nil {
		return node{}, err
	}
	if _, err := p.dec.ReadToken(); err != nil { // the closing bracket
		return node{}, err
	}
	n.raw = p.src[start:p.dec.InputOffset():p.dec.InputOffset()]
	return n, nil
}

func (p *parser) object(n *node, levels int) error {
	n.members = map[string]node{}
	for p.dec.PeekKind() != '}' {
		name, err := p.dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		member, err := p.value(levels)
		if err != nil {
			return err
		}
		n.names = append(n.names, key)
		n.members[key] = member
	}
	return nil
}

func (p *parser) array(n *node) error {
	n.items = []json.RawMessage{}
	for p.dec.PeekKind() != ']' {
		raw, err := p.raw()
		if err != nil {
			return err
		}
		n.items = append(n.items, json.RawMessage(raw))
	}
	return nil
}

// raw reads one value and returns its bytes as they stand in src: no copy is made of a record.
func (p *parser) raw() (jsontext.Value, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := p.dec.InputOffset()
	return p.src[end-int64(len(v)) : end : end], nil
}

// present says whether there is a value, and it is not null.
func (n node) present() bool { return len(n.raw) > 0 && n.raw.Kind() != 'n' }

func (n node) isObject() bool { return len(n.raw) > 0 && n.raw.Kind() == '{' }

func (n node) isArray() bool { return len(n.raw) > 0 && n.raw.Kind() == '[' }

// str gives the text of a string exactly; ok is false for every other kind.
func (n node) str() (text string, ok bool) {
	if len(n.raw) == 0 || n.raw.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, n.raw)
	return string(b), err == nil
}

// text gives a string's text or a number's digits as they were sent.
func (n node) text() (text string, ok bool) {
	if len(n.raw) > 0 && n.raw.Kind() == '0' {
		return string(n.raw), true
	}
	return n.str()
}

// first gives the first of the named members that is there and not null.
func (n node) first(names ...string) node {
	for _, name := range names {
		if m := n.members[name]; m.present() {
			return m
		}
	}
	return node{}
}
