package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// standbyName is what a standby calls itself, for synchronous_standby_names.
const standbyName = "lab_standby"

// pairParams let a standby that was copied while the primary wrote find all WAL since, and make a failover quick.
var pairParams = map[string]string{"wal_keep_size": "256MB", "max_wal_senders": "5", "wal_receiver_status_interval": "1s", "wal_retrieve_retry_interval": "100ms"}

// standby makes a physical copy of a running cluster that follows it over a cable of its own. Plain SQL and a copy of the
// files do, since pg_basebackup is not among the programs that every build brings.
func (t *trial) standby(primary *cluster) (*cluster, *cable) {
	cable := t.cable(primary)
	host, port, err := net.SplitHostPort(cable.addr)
	t.must(err)
	dir := t.twin(primary)
	t.must(primary.backup(t.ctx, filepath.Join(dir, "pg", "data")))
	cfg, err := pgx.ParseConfig(primary.SuperURL())
	t.must(err)
	params := map[string]string{"primary_conninfo": fmt.Sprintf("host=%s port=%s user=%s password=%s application_name=%s sslmode=disable",
		host, port, cfg.User, cfg.Password, standbyName)}
	for k, v := range pairParams {
		params[k] = v
	}
	s, err := launchCluster(t.ctx, t.opt, dir, params)
	t.must(err)
	t.adopt(s)
	t.until("the standby to follow", func() (streams bool, err error) {
		err = t.db.one(t.ctx, `select exists (select 1 from pg_stat_replication where application_name = $1 and state = 'streaming')`, []any{standbyName}, &streams)
		return streams, err
	})
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "a standby follows"})
	return s, cable
}

// waitForStandby has every commit of the primary wait for the standby.
func (t *trial) waitForStandby() {
	t.must(t.db.c.admin(t.ctx, "ALTER SYSTEM SET synchronous_standby_names = '"+standbyName+"'"))
	t.must(t.db.c.admin(t.ctx, "SELECT pg_reload_conf()"))
	t.until("commits to wait for the standby", func() (sync bool, err error) {
		err = t.db.one(t.ctx, `select exists (select 1 from pg_stat_replication where application_name = $1 and sync_state = 'sync')`, []any{standbyName}, &sync)
		return sync, err
	})
}

// promote makes a standby a primary, on a timeline of its own, and has the lab read it.
func (t *trial) promote(s *cluster) {
	t.must(s.admin(t.ctx, "SELECT pg_promote(true, 30)"))
	t.db.move(s)
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the standby is the primary"})
}

// adopt closes a cluster when the trial ends.
func (t *trial) adopt(c *cluster) {
	c.own = true
	t.clusters = append(t.clusters, c)
}

// twin makes a folder for a cluster with the passwords of another one, so that both are reached by the same URL but for
// the socket.
func (t *trial) twin(c *cluster) string {
	dir, err := tempDir("posthorn-lab-pg-")
	t.must(err)
	t.folders = append(t.folders, dir)
	pg := filepath.Join(dir, "pg")
	t.must(os.Mkdir(pg, 0o711))
	t.must(os.WriteFile(filepath.Join(pg, "lock"), nil, 0o600))
	for _, name := range []string{"password", "superuser-password"} {
		b, err := os.ReadFile(filepath.Join(c.DataDir(), name))
		t.must(err)
		t.must(os.WriteFile(filepath.Join(pg, name), b, 0o600))
	}
	return dir
}

// backup copies a running cluster's files into a folder that makes a standby of them. The WAL in between comes by
// streaming. One session begins and ends it: PostgreSQL gives the backup up when that session ends.
func (c *cluster) backup(ctx context.Context, to string) error {
	conn, err := pgx.Connect(ctx, c.SuperURL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `select pg_backup_start('lab', true)`); err != nil {
		return err
	}
	leave := func(rel string) bool {
		return strings.HasPrefix(rel, "postmaster.") || filepath.Dir(rel) == "pg_wal" && !strings.HasSuffix(rel, "archive_status") ||
			filepath.Dir(rel) == "pg_replslot" || filepath.Dir(rel) == "pg_stat_tmp" || strings.HasPrefix(filepath.Base(rel), "pgsql_tmp")
	}
	if err := copyTree(c.ClusterDir(), to, leave); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, `select labelfile from pg_backup_stop(false)`).Scan(&label); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(to, "backup_label"), []byte(label), 0o600), os.WriteFile(filepath.Join(to, "standby.signal"), nil, 0o600))
}
