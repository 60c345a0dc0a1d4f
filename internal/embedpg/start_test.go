package embedpg

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A new folder becomes a server with an ordinary role, durable commits and no TCP.
func TestStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "deep", "er", "pg")
	s := start(t, Config{DataDir: dir, Params: map[string]string{"log_min_duration_statement": "1000", "application_name": `it's a \ test`}})

	for _, want := range []struct{ sql, value string }{
		{"select current_user::text", "posthorn"},
		{"select current_database()::text", "posthorn"},
		{"select (rolsuper or rolcreatedb or rolcreaterole)::text from pg_roles where rolname = current_user", "false"},
		{"select current_setting('search_path')", "posthorn, public"},
		{"select current_setting('listen_addresses')", ""},
		{"select current_setting('fsync') || current_setting('synchronous_commit') || current_setting('full_page_writes')", "ononon"},
		{"select current_setting('server_encoding') || current_setting('data_checksums')", "UTF8on"},
		{"select current_setting('TimeZone')", "UTC"},
		{"select current_setting('log_min_duration_statement')", "1s"},
		{"select string_agg(x, '' order by x) from unnest(array['b', 'a', 'B', 'ä']) x", "Babä"}, // by bytes
		{"create table t (i int)", "<nil>"},
	} {
		if got := query(t, s.URL(), want.sql); got != want.value {
			t.Errorf("%s = %q, want %q", want.sql, got, want.value)
		}
	}
	if got := query(t, s.SuperURL(), "select current_setting('is_superuser') || current_setting('search_path')"); got != "onposthorn, public" {
		t.Errorf("superuser: %q", got)
	}
	if !strings.HasPrefix(s.Version(), query(t, s.URL(), "select split_part(current_setting('server_version'), ' ', 1)")) {
		t.Errorf("Version() = %q", s.Version())
	}
	if conf := read(t, s.folder.conf()); !strings.Contains(conf, `application_name = 'it''s a \\ test'`) {
		t.Errorf("posthorn.conf:\n%s", conf)
	}
	checkModes(t, s)
	checkURL(t, s)
	checkWrongPassword(t, s)
}

func checkModes(t *testing.T, s *Server) {
	t.Helper()
	root := os.FileMode(0o700)
	if isRoot() {
		root = 0o710
	}
	for path, want := range map[string]os.FileMode{
		s.DataDir(): root, s.ClusterDir(): 0o700, filepath.Dir(s.SocketPath()): 0o700,
		s.folder.password(): 0o600, s.folder.superPassword(): 0o600, s.LogFile(): 0o600, s.folder.conf(): 0o640,
	} {
		info, err := os.Lstat(path)
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
	entries, err := os.ReadDir(s.DataDir())
	must(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			t.Errorf("initdb left %s", e.Name())
		}
	}
}

func checkURL(t *testing.T, s *Server) {
	t.Helper()
	u, err := url.Parse(s.URL())
	must(t, err)
	host := u.Query().Get("host")
	if u.Scheme != "postgres" || u.Host != "" || u.Path != "/posthorn" || u.Query().Get("port") != "5432" || !filepath.IsAbs(host) {
		t.Errorf("URL() = %s", u.Redacted())
	}
	if len(host) > maxSocketDir {
		t.Errorf("socket folder %s is too long", host)
	}
}

func checkWrongPassword(t *testing.T, s *Server) {
	t.Helper()
	u, err := url.Parse(s.URL())
	must(t, err)
	u.User = url.UserPassword("posthorn", "wrong")
	conn, err := pgx.Connect(context.Background(), u.String())
	if err == nil {
		_ = conn.Close(context.Background())
		t.Error("a wrong password was accepted")
	}
}

// Passwords whose files were lost are made anew and put in force.
func TestLostPasswords(t *testing.T) {
	t.Parallel()
	dir := copyFolder(t)
	must(t, os.Remove(filepath.Join(dir, "password")))
	must(t, os.Remove(filepath.Join(dir, "superuser-password")))
	s := start(t, Config{DataDir: dir})
	query(t, s.URL(), "select 1")
	query(t, s.SuperURL(), "select 1")
}

// Settings that would change the URL, or break the file, are refused.
func TestParams(t *testing.T) {
	for name, value := range map[string]string{"port": "1", "Data_Directory": "/x", "a b": "1", "work_mem": "1\nfsync=off"} {
		if _, err := Start(context.Background(), Config{DataDir: "/nonexistent/x", Params: map[string]string{name: value}}); err == nil || !strings.Contains(err.Error(), "Params") {
			t.Errorf("%s=%q: %v", name, value, err)
		}
	}
	if _, err := Start(context.Background(), Config{}); err == nil {
		t.Error("an empty DataDir was accepted")
	}
}

// An error of PostgreSQL's own is passed on with its log line, and nothing stays behind.
func TestStartError(t *testing.T) {
	t.Parallel()
	dir := copyFolder(t)
	_, err := Start(context.Background(), Config{DataDir: dir, Params: map[string]string{"shared_buffers": "nonsense"}})
	var step *StepError
	if !errors.As(err, &step) || step.Step != "start" || !strings.Contains(step.Log, "shared_buffers") {
		t.Errorf("error: %v", err)
	}
	start(t, Config{DataDir: dir}) // the folder was given back
}

func read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return string(content)
}
