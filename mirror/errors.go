package mirror

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// Kind is what a failure means for the caller.
type Kind int

const (
	// KindInternal is a mistake of this program.
	KindInternal Kind = iota
	// KindConfig means: address, login, database or certificate are wrong; a person must act.
	KindConfig
	// KindUnreachable means: the server is away, full, restarting or in a failover, or the
	// context ended. Trying later helps. After Commit, Restart and Adopt the outcome
	// may be unknown: read the Checkpoint again.
	KindUnreachable
	// KindTransient means: the transaction was rolled back and may simply be tried again.
	KindTransient
	// KindFenced means: the state row is not where the caller believed; nothing was written.
	KindFenced
	// KindSchema means: the database's schema does not fit this binary.
	KindSchema
	// KindDenied means: the login lacks a right.
	KindDenied
	// KindData means: PostgreSQL refused a value. Trying again cannot help.
	KindData
)

// String names the kind for logs.
func (k Kind) String() string {
	switch k {
	case KindConfig:
		return "config"
	case KindUnreachable:
		return "unreachable"
	case KindTransient:
		return "transient"
	case KindFenced:
		return "fenced"
	case KindSchema:
		return "schema"
	case KindDenied:
		return "denied"
	case KindData:
		return "data"
	default:
		return "internal"
	}
}

// Error is every failure of this package but *HeldError, *FuseError and ErrStagingLost. Its text holds neither
// passwords nor values of records. Err is set when it is safe to print and of use
// to errors.Is: the context's error, the network's error.
type Error struct {
	Kind     Kind
	Op       string // what was done: "commit users"
	SQLState string // PostgreSQL's code, "" when it gave none
	Message  string
	Hint     string // what a person can do, may be ""
	Err      error
}

func (e *Error) Error() string {
	text := "mirror: " + e.Op + ": " + e.Message
	if e.SQLState != "" {
		text += " (SQLSTATE " + e.SQLState + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Name is the failure's one name, for run logs and machines.
func (e *Error) Name() string {
	switch e.Kind {
	case KindConfig, KindDenied:
		return "DATABASE_REFUSED"
	case KindUnreachable, KindTransient:
		return "DATABASE_UNREACHABLE"
	case KindSchema:
		return "SCHEMA_MISMATCH"
	case KindFenced:
		return "SUPERSEDED"
	default:
		return "DATABASE_INTERNAL"
	}
}

// loginError is a login that Options.Login could not give.
type loginError struct{ err error }

func (e *loginError) Error() string { return "no login: " + e.err.Error() }

func (e *loginError) Unwrap() error { return e.err }

// HeldError means that somebody else holds a resource's lease. Holder is zero
// when the holder could not be named.
type HeldError struct {
	Resource string
	Holder   Holder
}

func (e *HeldError) Error() string {
	if e.Holder == (Holder{}) {
		return fmt.Sprintf("mirror: lease %s: held by another run", e.Resource)
	}
	return fmt.Sprintf("mirror: lease %s: held by process %d on %s", e.Resource, e.Holder.PID, e.Holder.Host)
}

// fail gives err our own words. It is applied once, where an exported method
// returns; errors that have our words already pass through.
func fail(op string, err error) error {
	var (
		newer *migrations.NewerError
		pg    *pgconn.PgError
		login *loginError
	)
	switch {
	case err == nil:
		return nil
	case spoken(err):
		return err
	case errors.As(err, &login):
		return &Error{Kind: KindUnreachable, Op: op, Message: "there is no login for PostgreSQL: " + login.err.Error(), Err: login.err}
	case errors.As(err, &newer):
		return &Error{
			Kind: KindSchema, Op: op, Err: newer,
			Message: fmt.Sprintf("the database is at schema version %d, this binary knows %d", newer.Database, newer.Binary),
			Hint:    "use the release that migrated the database, or a later one",
		}
	case errors.Is(err, migrations.ErrBusy):
		return &Error{Kind: KindTransient, Op: op, Err: migrations.ErrBusy, Message: "another process is migrating this database"}
	case errors.As(err, &pg):
		e := refusal(pg)
		e.Op = op
		return e
	}
	return connectionFailure(op, err)
}

// connectionFailure judges what went wrong outside of PostgreSQL's own answers.
func connectionFailure(op string, err error) error {
	var (
		network   net.Error
		operation *net.OpError
		connect   *pgconn.ConnectError
		untrusted *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
	)
	e := &Error{Kind: KindUnreachable, Op: op, Message: "the connection to PostgreSQL broke"}
	switch {
	case errors.Is(err, context.Canceled):
		e.Message, e.Err = "interrupted", context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		e.Message, e.Err = "PostgreSQL did not answer in time", context.DeadlineExceeded
	case errors.As(err, &untrusted), errors.As(err, &authority):
		e.Kind, e.Message = KindConfig, "the server's certificate is not trusted"
		e.Hint = "set sslrootcert in the database URL"
	case errors.As(err, &operation):
		e.Message, e.Err = "PostgreSQL is not reachable: "+operation.Error(), operation
		e.Hint = "check host and port of the database URL, and that the server runs"
	case errors.As(err, &connect), errors.As(err, &network), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed), pgconn.SafeToRetry(err):
		return e
	default:
		e.Kind, e.Message = KindInternal, fmt.Sprintf("unexpected %T", err)
	}
	return e
}

// refusal judges an error answer of PostgreSQL by its SQLSTATE.
func refusal(pg *pgconn.PgError) *Error {
	e := &Error{SQLState: pg.Code, Message: "PostgreSQL: " + strings.ToValidUTF8(pg.Message, "\uFFFD")}
	switch code := pg.Code; code {
	case "42704":
		e.Kind, e.Hint = KindConfig, "check the name: a role or another object is not there"
	case "3D000":
		e.Kind, e.Hint = KindConfig, "check the database's name in the database URL"
	case "25006":
		e.Kind, e.Hint = KindUnreachable, "the server only reads: a failover is in progress, or this is a standby"
	case "57014":
		e.Kind, e.Hint = KindTransient, "a statement timeout or a cancel request ended the statement"
	case "42501":
		e.Kind, e.Hint = KindDenied, "grant the right to the login of the database URL; `check` lists what is missing"
	case "42P01", "3F000", "42703", "42883", "42804", "42P10":
		e.Kind = KindSchema
		e.Hint = "run `xiaoqu-sync migrate`; a table that was altered by hand has to be put right, or dropped before: its rows are fetched again"
	case "53100":
		e.Kind, e.Hint = KindUnreachable, "make room on the database's disk"
	case "53300":
		e.Kind, e.Hint = KindUnreachable, "raise max_connections or the connection limit of the login or the database, or look who holds so many"
	case "23503":
		e.Kind, e.Message = KindDenied, fmt.Sprintf("the foreign key %s of %s.%s keeps the rows", pg.ConstraintName, pg.SchemaName, pg.TableName)
		e.Hint = "remove the rows that refer to them first, or let the foreign key do it (ON DELETE CASCADE or SET NULL)"
	case "55P03", "55006":
		e.Kind = KindTransient
	default:
		e.byClass(pg)
	}
	return e
}

// byClass judges by the first two characters. The texts of the classes that may
// quote a value, or come from somebody's trigger, are replaced.
func (e *Error) byClass(pg *pgconn.PgError) {
	switch pg.Code[:min(2, len(pg.Code))] {
	case "28":
		e.Kind, e.Hint = KindConfig, "check user and password of the database URL, and the server's pg_hba.conf"
	case "08", "53", "57", "58":
		e.Kind = KindUnreachable
	case "40":
		e.Kind = KindTransient
	case "21", "22", "23", "54":
		e.Kind, e.Message, e.Hint = KindData, "PostgreSQL refused a value", hintAdded
		if where := pg.ConstraintName + pg.ColumnName; where != "" {
			e.Message += ": " + where
		}
	case "25", "42", "0A":
		e.Kind = KindInternal
	default:
		e.Kind, e.Message, e.Hint = KindInternal, "PostgreSQL refused a statement", hintAdded
	}
}

// hintAdded is for what our statements and screened values cannot cause alone.
const hintAdded = "nothing of it was written; look for what was added to the mirror's tables by hand: triggers, constraints, unique indexes, columns"
