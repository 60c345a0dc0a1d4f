package lab

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// dump writes the trial's database down as SQL, as operators do.
func (t *trial) dump() (file string) {
	file = filepath.Join(t.dir, "dump-"+t.cmid()+".sql")
	t.tool(t.db.c, "pg_dump", t.db.name, "--file="+file)
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "a dump was written"})
	return file
}

// restore makes the trial's database anew in a cluster from a dump, and has the lab read it there.
func (t *trial) restore(c *cluster, file string) {
	half := t.db.name + "_restored" // nobody sees half
	t.must(c.admin(t.ctx, "CREATE DATABASE "+half+" OWNER posthorn"))
	t.tool(c, "psql", half, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file="+file)
	t.must(c.admin(t.ctx, "DROP DATABASE IF EXISTS "+t.db.name+" WITH (FORCE)"))
	t.db.move(c)
	t.rewound("a dump was restored")
	t.must(c.admin(t.ctx, "ALTER DATABASE "+half+" RENAME TO "+t.db.name))
}

// tool runs one of PostgreSQL's programs, which not every build brings, on a database.
func (t *trial) tool(c *cluster, name, database string, args ...string) {
	path := filepath.Join(c.BinDir(), name)
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(name); err != nil {
			panic(unable{name + " is neither beside the server's programs in " + c.BinDir() + " nor in PATH"})
		}
	}
	cfg, err := pgx.ParseConfig(c.SuperURL())
	t.must(err)
	to, err := url.Parse(c.at(database, c.SuperURL()))
	t.must(err)
	to.User = url.User(cfg.User) // the password is nobody's business who lists processes
	p, err := t.sup.start(program{name: name, path: path, args: append(args, "--no-password", "--dbname="+to.String()), env: []string{"PGPASSWORD=" + cfg.Password}})
	t.must(err)
	ctx, cancel := t.deadline("%s to end", name)
	defer cancel()
	code, err := p.wait(ctx)
	t.must(err)
	switch said := p.tail(5); {
	case strings.Contains(said, "server version mismatch"):
		panic(unable{said})
	case code != 0:
		t.abort("%s ended with status %d: %s", name, code, said)
	}
}

// emptyCluster starts a new cluster, with the passwords of the trial's one.
func (t *trial) emptyCluster() *cluster {
	c, err := launchCluster(t.ctx, t.opt, t.twin(t.db.c), nil)
	t.must(err)
	t.adopt(c)
	return c
}
