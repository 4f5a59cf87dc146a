package mirror

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// The database's clock is on both sides, so that a worker's own does not matter.
const readAges = `
select resource, greatest(extract(epoch from clock_timestamp() - last_success_at), 0)::float8
from {sync}.state
where resource = any ($1::text[]) and last_success_at is not null`

// Ages tells how long ago the last complete round of each resource ended. A
// resource that never had one is not in it.
func (m *Mirror) Ages(ctx context.Context, resources []string) (map[string]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	ages := map[string]time.Duration{}
	rows, err := m.pool.Query(ctx, m.layout.Render(readAges), resources)
	if err == nil {
		var resource string
		var seconds float64
		_, err = pgx.ForEachRow(rows, []any{&resource, &seconds}, func() error {
			ages[resource] = time.Duration(seconds * float64(time.Second))
			return nil
		})
	}
	return ages, fail("ages", err)
}
