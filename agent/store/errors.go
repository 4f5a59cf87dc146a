package store

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// loginError is a login that Options.Login could not give.
type loginError struct{ err error }

func (e *loginError) Error() string { return "no login: " + e.err.Error() }

func (e *loginError) Unwrap() error { return e.err }

// fail gives err our own words, once, where a call of this package ends. What the
// caller can do something about has a *agent.Failure in its chain; the text around
// it is for the operator. PostgreSQL's own texts may quote values, so none is kept.
func fail(ctx context.Context, op string, err error) error {
	var (
		spoken *agent.Failure
		pg     *pgconn.PgError
		login  *loginError
		dial   *net.OpError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &spoken):
		return spoken
	case ctx.Err() != nil:
		return fmt.Errorf("agent/store: %s: %w", op, ctx.Err())
	case errors.As(err, &pg):
		return refusal(op, pg)
	case errors.As(err, &login):
		return fmt.Errorf("agent/store: %s: %w: %w", op, login, unreachable())
	case errors.As(err, &dial):
		return fmt.Errorf("agent/store: %s: %w: %w", op, dial, unreachable())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("agent/store: %s: no answer within %v: %w", op, opTimeout, unreachable())
	}
	return fmt.Errorf("agent/store: %s: the connection broke (%T): %w", op, err, unreachable())
}

func unreachable() *agent.Failure {
	return &agent.Failure{Class: agent.Temporary, Code: "database_unreachable", Message: "the database cannot be reached at the moment"}
}

// refusal judges an answer of PostgreSQL by its SQLSTATE.
func refusal(op string, pg *pgconn.PgError) error {
	f := &agent.Failure{Class: agent.Permanent}
	switch code := pg.Code; code {
	case "57014":
		f.Class, f.Code, f.Message = agent.Temporary, "database_slow", "the database did not answer in time"
		f.Suggestions = []string{"ask for less, or filter by a column that has an index"}
	case "42501", "22023": // 22023: SET ROLE to one that is not there
		f.Code, f.Message = "database_denied", "the database does not let the agents' reader do this"
		f.Suggestions = []string{"the operator grants it: xiaoqu-sync migrate --grant-reader ROLE, with --masked for masked views; and grant ROLE to the worker's login"}
	case "42P01", "3F000", "42703", "42883":
		f.Code, f.Message = "schema_mismatch", "tables or views of the mirror are missing, or are of another release"
		f.Suggestions = []string{"the operator runs xiaoqu-sync migrate"}
	case "25006", "55P03":
		f = unreachable()
	default:
		if f = byClass(code); f == nil {
			return fmt.Errorf("agent/store: %s: PostgreSQL refused it (SQLSTATE %s, %s)", op, code, pg.ConstraintName)
		}
	}
	return fmt.Errorf("agent/store: %s (SQLSTATE %s): %w", op, pg.Code, f)
}

// byClass judges by the first two characters; nil is a mistake of ours.
func byClass(code string) *agent.Failure {
	switch code[:min(2, len(code))] {
	case "08", "40", "53", "57", "58":
		return unreachable()
	case "28", "3D":
		return &agent.Failure{Class: agent.Permanent, Code: "database_refused", Message: "the database does not take the agents' login"}
	}
	return nil
}
