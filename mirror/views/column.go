package views

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Type is the PostgreSQL type of a typed column.
type Type string

// The types that a column may have.
const (
	Text        Type = "text"
	Integer     Type = "integer" // a bigint
	Numeric     Type = "numeric"
	Boolean     Type = "boolean"
	Date        Type = "date"
	Timestamptz Type = "timestamptz"
	Texts       Type = "text[]"
	JSON        Type = "jsonb"
)

// Types lists them.
func Types() []Type {
	return []Type{Text, Integer, Numeric, Boolean, Date, Timestamptz, Texts, JSON}
}

// Column is one typed column of a resource.
type Column struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Type  Type   `json:"type"`
	Index bool   `json:"index,omitempty"` // an index on it, for reads by its value; values over 2,000 bytes do not fit then
	// Ref says to which column of which resource the value leads, as
	// "properties.id". It is a note for people in the column's comment: a foreign
	// key would make one resource's sync wait for another's.
	Ref string `json:"ref,omitempty"`
}

// Definition is all that the views of a resource are made from.
type Definition struct {
	Columns []Column `json:"columns"`
	Masked  []string `json:"masked"` // paths that the masked view hides
	Zone    string   `json:"zone"`   // IANA name: of times that name none
}

const maxColumns = 200

var (
	columnName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)
	refName    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}\.[a-z_][a-z0-9_]{0,47}$`)
)

// base are the columns that every view begins with.
func base() []string {
	return []string{"id", "record", "modify_time", "version", "snapshot_id", "synced_at", "change_seq", "deleted_at"}
}

// reserved are names that a typed column cannot have.
func reserved() []string { return append(base(), "delete_reason", "content_hash") }

// Check says what is wrong with a column by itself.
func (c Column) Check() error {
	switch {
	case !columnName.MatchString(c.Name):
		return errors.New("a column's name is a to z, 0 to 9 and _, at most 48 characters, not beginning with a digit")
	case slices.Contains(reserved(), c.Name):
		return fmt.Errorf("every view has a column %s already", c.Name)
	case !slices.Contains(Types(), c.Type):
		names := make([]string, len(Types()))
		for i, t := range Types() {
			names[i] = string(t)
		}
		return fmt.Errorf("the type is one of %s", strings.Join(names, ", "))
	case c.Ref != "" && !refName.MatchString(c.Ref):
		return errors.New("ref is RESOURCE.COLUMN, such as properties.id")
	case c.Index && c.Type == JSON:
		return errors.New("a jsonb column takes no index here")
	}
	_, err := ParsePath(c.Path)
	return err
}

// check holds a definition to what Render expects.
func (d Definition) check() error {
	if len(d.Columns) > maxColumns {
		return fmt.Errorf("at most %d columns", maxColumns)
	}
	seen := map[string]bool{}
	for _, c := range d.Columns {
		if err := c.Check(); err != nil {
			return fmt.Errorf("column %.60q: %w", c.Name, err)
		}
		if seen[c.Name] {
			return fmt.Errorf("column %s is there twice", c.Name)
		}
		seen[c.Name] = true
	}
	for _, m := range d.Masked {
		if err := CheckMask(m); err != nil {
			return fmt.Errorf("masked path %.100q: %w", m, err)
		}
	}
	return nil
}
