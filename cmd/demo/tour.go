package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// database is the one that every PostgreSQL server has.
const database = "postgres"

// stage is what the tour plays on.
type stage struct {
	out      io.Writer
	xiaoqu   *remotetest.Server
	postgres *localpg.Cluster
	binary   string
	config   string // a file, "" for none
	settings []setting
}

func tour(ctx context.Context, xiaoqu *remotetest.Server, keep bool, out io.Writer) error {
	s := &stage{out: out, xiaoqu: xiaoqu}
	clean, err := s.set(ctx)
	defer clean()
	if err != nil {
		return err
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	s.say("To go on by hand")
	if !keep {
		fmt.Fprint(out, "  go run ./cmd/demo --keep     leaves all of this running\n"+
			"  README.md                    installation, verbs, exit codes, configuration\n")
		return nil
	}
	fmt.Fprintf(out, "%s\n  %s status\n  psql \"$XIAOQU_DATABASE_URL\" -c 'select * from xiaoqu.freshness'\n\nCtrl-C ends it all.\n",
		exports(s.settings), s.binary)
	<-ctx.Done()
	return nil
}

// set starts PostgreSQL and builds the tool. clean takes it all down, also
// after an error.
func (s *stage) set(ctx context.Context) (clean func(), err error) {
	dir, err := os.MkdirTemp("", "xiaoqu-demo-")
	if err != nil {
		return func() {}, err
	}
	clean = func() {
		if s.postgres != nil {
			_ = s.postgres.Stop()
		}
		_ = os.RemoveAll(dir)
	}
	s.say("Starting a throw-away PostgreSQL, building xiaoqu-sync")
	if s.postgres, err = localpg.Start(ctx, localpg.Options{}); err != nil {
		return clean, err
	}
	s.binary = filepath.Join(dir, "xiaoqu-sync")
	build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync")
	if text, err := build.CombinedOutput(); err != nil {
		return clean, fmt.Errorf("build xiaoqu-sync (run the demo from the repository): %w\n%s", err, text)
	}
	s.settings = append(remoteSettings(s.xiaoqu), setting{"XIAOQU_DATABASE_URL", s.postgres.URL(database)})
	return clean, nil
}

// play is the tour itself.
func (s *stage) play(ctx context.Context) error {
	steps := []func(context.Context) error{
		s.verb("Is everything in place?", "check"),
		s.verb("The first sync reads everything", "sync"),
		s.query("What a CRM backend reads", `
			select record->>'name' as name, record->>'mobile' as mobile, modify_time
			from xiaoqu.users_live order by modify_time desc limit 3`),
		s.change,
		s.verb("The second sync reads the changes only", "sync"),
		s.query("Deleted upstream: marked here, gone from the live view", `
			select id, deleted_at, (select count(*) from xiaoqu.contracts_live l where l.id = c.id) as live
			from xiaoqu.contracts c where deleted_at is not null order by id`),
		s.query("What changed, for a reader that follows along", `
			select 'users' as resource, id, change_seq from xiaoqu.users where change_seq > 500
			union all
			select 'contracts', id, change_seq from xiaoqu.contracts where change_seq > 1500
			order by 1, 3`),
		s.verb("How fresh is it?", "status"),
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) say(title string) { fmt.Fprintf(s.out, "\n── %s\n", title) }

// verb runs the real binary as an operator would.
func (s *stage) verb(title string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		s.say(title)
		fmt.Fprintf(s.out, "$ xiaoqu-sync %s\n", strings.Join(args, " "))
		c := s.command(ctx, args...)
		c.Stdout, c.Stderr = s.out, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("xiaoqu-sync %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
}

// command is the real binary in the demo's surroundings.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	if s.config != "" {
		args = append(args, "--config", s.config)
	}
	c := exec.CommandContext(ctx, s.binary, args...)
	c.Env = append(os.Environ(), "XIAOQU_LOG_LEVEL=warn")
	for _, kv := range s.settings {
		c.Env = append(c.Env, kv.name+"="+kv.value)
	}
	return c
}

// query shows what a reader sees.
func (s *stage) query(title, sql string) func(context.Context) error {
	return func(ctx context.Context) error {
		s.say(title)
		fmt.Fprintf(s.out, "=> %s\n", strings.Join(strings.Fields(sql), " "))
		columns, rows, err := localpg.Query(ctx, s.postgres.URL(database), sql)
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, strings.Join(columns, "\t"))
		for _, row := range rows {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
		return t.Flush()
	}
}

// change edits, deletes and adds records upstream.
func (s *stage) change(context.Context) error {
	s.say("Meanwhile, upstream: 3 users edited, 2 contracts deleted, 1 user added")
	users, contracts := s.xiaoqu.IDs("users"), s.xiaoqu.IDs("contracts")
	for _, id := range users[:3] {
		s.xiaoqu.Edit("users", id, `{"name":"王小明（已改名）"}`)
	}
	for _, id := range contracts[:2] {
		s.xiaoqu.Delete("contracts", id)
	}
	s.xiaoqu.Put("users", "9000000000000000001", `{"name":"新同事 李雷","mobile":"13900000000","role":"保洁"}`)
	return nil
}
