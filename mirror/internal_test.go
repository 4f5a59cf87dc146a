package mirror

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A COMMIT of a transaction that failed answers ROLLBACK, and no error.
func TestCommitOfAnAbortedTransactionIsNoticed(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), os.Getenv("XIAOQU_TEST_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "begin; select 1/0"); err == nil {
		t.Fatal("divided by zero")
	}
	var e *Error
	if err := commit(t.Context(), conn); !errors.As(err, &e) || e.Kind != KindTransient {
		t.Errorf("%v", err)
	}
}

func TestCountsAdd(t *testing.T) {
	a := Counts{Received: 1, Staged: 10, Inserted: 2, Updated: 3, Deleted: 4, Revived: 5, Unchanged: 6, Duplicates: 7, Quarantined: 8, Mended: 9}
	if got, want := a.Add(a), (Counts{2, 20, 4, 6, 8, 10, 12, 14, 16, 18}); got != want || got.Stored() != 28 {
		t.Errorf("%+v", got)
	}
}

func TestKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for k := KindInternal; k <= KindData; k++ {
		seen[k.String()] = true
	}
	if len(seen) != int(KindData)+1 {
		t.Errorf("%v", seen)
	}
}
