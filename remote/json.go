package remote

import (
	"bytes"
	"encoding/json"
	"fmt"

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

// parse reads src, which must be one JSON value, and opens objects and arrays down to the given number of levels. Deeper
// members are checked and kept whole; elements of arrays are only cut, to be judged one by one: a record's faults are not
// the page's. Duplicate names and broken text inside strings pass.
func parse(src []byte, levels int) (node, error) {
	p := parser{scanner{src: src}}
	n, err := p.value(levels)
	if err != nil {
		return node{}, err
	}
	if p.peek(); p.at < len(src) {
		return node{}, fmt.Errorf("text after the JSON value at byte %d", p.at)
	}
	return n, nil
}

type parser struct{ scanner }

func (p *parser) value(levels int) (node, error) {
	kind := p.peek()
	if levels == 0 || (kind != '{' && kind != '[') {
		raw, err := p.scanner.value()
		if err == nil {
			err = check(raw)
		}
		return node{raw: raw}, err
	}
	start := p.at
	p.at++
	var n node
	var err error
	if kind == '{' {
		err = p.object(&n, levels-1)
	} else {
		err = p.array(&n)
	}
	n.raw = p.src[start:p.at:p.at]
	return n, err
}

func (p *parser) object(n *node, levels int) error {
	n.members = map[string]node{}
	return p.list('}', func() error {
		name, err := p.name()
		if err != nil {
			return err
		}
		member, err := p.value(levels)
		n.names = append(n.names, name)
		n.members[name] = member
		return err
	})
}

// name reads a member's name and the colon behind it.
func (p *parser) name() (string, error) {
	if p.peek() != '"' {
		return "", fmt.Errorf("no name at byte %d", p.at)
	}
	raw, err := p.scanner.value()
	if err != nil {
		return "", err
	}
	if err := check(raw); err != nil {
		return "", err
	}
	name, _ := jsontext.AppendUnquote(nil, raw) // checked; broken text in it is replaced
	return string(name), p.take(':')
}

func (p *parser) array(n *node) error {
	n.items = []json.RawMessage{}
	return p.list(']', func() error {
		item, err := p.scanner.value()
		n.items = append(n.items, json.RawMessage(item))
		return err
	})
}

// list reads what stands between commas, up to the closing bracket.
func (p *parser) list(closing byte, read func() error) error {
	if p.peek() == closing {
		p.at++
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		if p.peek() == closing {
			p.at++
			return nil
		}
		if err := p.take(','); err != nil {
			return err
		}
	}
}

// check holds a value to JSON's grammar.
func check(raw []byte) error {
	if len(raw) < 32 && raw[0] == '"' && !bytes.ContainsAny(raw, "\\\x7f") && printable(raw) {
		return nil // most names and ids
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := d.ReadValue()
	return err
}

func printable(raw []byte) bool {
	for _, c := range raw {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
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
