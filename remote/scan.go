package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

var (
	errEnd      = fmt.Errorf("the text ends within a JSON value: %w", io.ErrUnexpectedEOF)
	errBrackets = errors.New("brackets of JSON that do not match")
)

// scanner cuts JSON text into values without opening them. It matches brackets to any depth, so that one record that is
// nested too deeply, or spoilt within, is not the page's fault; what is inside a value it does not judge.
type scanner struct {
	src  []byte
	at   int
	open []byte // closing brackets to come, of the value that is being skipped
}

// peek passes white space and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.src); s.at++ {
		switch c := s.src[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take passes white space and the byte c, which must come next.
func (s *scanner) take(c byte) error {
	if s.peek() != c {
		if s.at == len(s.src) {
			return errEnd
		}
		return fmt.Errorf("no %q at byte %d", c, s.at)
	}
	s.at++
	return nil
}

// value passes one value and gives its bytes.
func (s *scanner) value() ([]byte, error) {
	c := s.peek()
	start := s.at
	var err error
	switch c {
	case 0:
		err = errEnd
	case '"':
		err = s.text()
	case '{', '[':
		err = s.nested()
	default:
		s.scalar()
	}
	if err == nil && s.at == start {
		err = fmt.Errorf("no value at byte %d", start)
	}
	if err != nil {
		return nil, err
	}
	return s.src[start:s.at:s.at], nil
}

// text passes a string.
func (s *scanner) text() error {
	for from := s.at + 1; ; {
		n := bytes.IndexByte(s.src[from:], '"')
		if n < 0 {
			return errEnd
		}
		end := from + n
		escapes := 0
		for s.src[end-1-escapes] == '\\' { // ends at the opening quote
			escapes++
		}
		if from = end + 1; escapes%2 == 0 {
			s.at = from
			return nil
		}
	}
}

// scalar passes a number or a literal.
func (s *scanner) scalar() {
	for ; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case ' ', '\t', '\r', '\n', ',', ':', '{', '}', '[', ']', '"':
			return
		}
	}
}

// nested passes an object or an array.
func (s *scanner) nested() error {
	s.open = s.open[:0]
	for s.at < len(s.src) {
		switch c := s.src[s.at]; c {
		case '"':
			if err := s.text(); err != nil {
				return err
			}
			continue
		case '{', '[':
			s.open = append(s.open, c+2) // their closing brackets in ASCII
		case '}', ']':
			last := len(s.open) - 1
			if s.open[last] != c {
				return errBrackets
			}
			if s.open = s.open[:last]; last == 0 {
				s.at++
				return nil
			}
		}
		s.at++
	}
	return errEnd
}
