package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Bouncer puts pgbouncer, in transaction mode, before the database of a URL, and gives the URL that leads through it. The
// test is skipped where the program is missing; scripts/install-postgres.sh installs it.
func Bouncer(t testing.TB, raw string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !executable(program) {
			t.Skip("pgbouncer is not installed")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("the URL cannot be read")
	}
	q := u.Query()
	dir, err := os.MkdirTemp(tempRoot(), "posthorn-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password, _ := u.User.Password()
	const port = "6432" // names the socket; nothing listens on the network
	write(t, filepath.Join(dir, "users"), fmt.Sprintf("%q %q\n", u.User.Username(), password))
	write(t, filepath.Join(dir, "ini"), fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr=\nlisten_port=%s\nunix_socket_dir=%s\n"+
		"auth_type=trust\nauth_file=%s/users\npool_mode=transaction\ndefault_pool_size=20\nlogfile=%s/log\npidfile=%s/pid\n",
		q.Get("host"), q.Get("port"), port, dir, dir, dir, dir))
	cmd := exec.Command(program, "-q", filepath.Join(dir, "ini"))
	if os.Geteuid() == 0 { // it refuses to run as root, and the database's socket is its owner's
		info, err := os.Stat(q.Get("host"))
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}, Pdeathsig: syscall.SIGKILL}
		for _, f := range []string{"", "users", "ini"} {
			if err := os.Chown(filepath.Join(dir, f), int(owner.Uid), int(owner.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	socket := filepath.Join(dir, ".s.PGSQL."+port)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket)
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("pgbouncer does not answer: %s", log)
		}
	}
	q.Set("host", dir)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	return u.String()
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o111 != 0
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
