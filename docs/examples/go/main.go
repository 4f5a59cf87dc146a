package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx, os.Getenv("DATABASE_URL"), os.Args[1]); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func follow(ctx context.Context, url, resource string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const table = "create table if not exists mirror_followers (resource text primary key, change_seq bigint not null)"
	if _, err := conn.Exec(ctx, table+"; listen xiaoqu_changes"); err != nil {
		return err
	}
	for {
		for {
			n, err := batch(ctx, conn, resource)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
		if os.Getenv("ONCE") != "" {
			return nil
		}
		// A notice is a hint: without one we look each minute.
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		_, err := conn.WaitForNotification(wait)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// batch deals with some changes and moves the place, in one transaction.
func batch(ctx context.Context, conn *pgx.Conn, resource string) (n int, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var at int64
		err := tx.QueryRow(ctx, "select change_seq from mirror_followers where resource = $1 for update", resource).Scan(&at)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		all := pgx.Identifier{"xiaoqu", resource + "_all"}.Sanitize()
		rows, err := tx.Query(ctx, "select id, deleted_at is not null, change_seq from "+all+" where change_seq > $1 order by change_seq limit 500", at)
		if err != nil {
			return err
		}
		var id string
		var deleted bool
		if _, err := pgx.ForEachRow(rows, []any{&id, &deleted, &at}, func() error {
			n++
			_, err := fmt.Println(resource, id, map[bool]string{true: "deleted", false: "changed"}[deleted])
			return err
		}); err != nil || n == 0 {
			return err
		}
		_, err = tx.Exec(ctx, "insert into mirror_followers values ($1, $2) on conflict (resource) do update set change_seq = excluded.change_seq", resource, at)
		return err
	})
	return n, err
}
