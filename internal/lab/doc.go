// Package lab proves the product's invariants on the machine that it runs on: it starts a real PostgreSQL and real
// processes, breaks them at named points, lets real clients recover, and judges rows and histories. docs/lab.md is its
// manual.
//
// # The four parts
//
//   - supervisor.go, gateway.go, database.go, cluster.go, standby.go, snapshot.go, dump.go: processes. `posthorn serve` and
//     `posthorn lab client` are started from the program's own file (or --bin), PostgreSQL by internal/embedpg. Exit codes
//     are read, logs are kept.
//   - network.go, network_db.go, freeze.go and internal/fault: what breaks. Fault points are armed by the environment of the
//     process that shall break; a relay is a network that can swallow, stand still and cut: a link before gateways, a cable
//     before PostgreSQL.
//   - device.go, peer.go, load.go, workload.go, rewind.go: who works. A device is an SDK client in a process of its own
//     (device_process.go is its inside); a peer says frames by hand; noise is what other programs do to the same database.
//   - history.go, tables.go, validate_*.go: the checker. Every client's frames and stores are recorded as they happen; when
//     a check is over, validators, one for each invariant, judge the record together with the tables.
//
// trial.go is one run of one check, with all of the above at hand; check_*.go are the checks; evidence.go, table.go and
// report.go write down what came out. mutants.go lists, for each check, what makes it fail.
//
// # Goroutines
//
// A trial owns: one keeper for each process (supervisor.go; it starts the process, waits for it and closes done), one
// sampler (sampler.go; it ends by the trial's context), one for each relay and three for each of its connections (network.go; they end with
// the relay), one for whatever goes on beside a check (load.go; told to stop and waited for), one for each peer (it empties the connection's frames and ends with it), one for each noise. Lines of a
// device are read by os/exec's copier, which ends with the process. run.go owns the cluster that checks share.
// A device process has one goroutine that follows the client's feed and ends with the client, and one that reads commands
// and ends with the process.
//
// # Shutdown
//
// At a trial's end, be it by a verdict, a missed deadline or Ctrl-C: what the check began (peers, relays, noise, what is
// frozen), the newest first → context → sampler → processes, by SIGKILL, each waited for → connections to the database →
// the trial's database → clusters of its own → its folders. At the run's end: the shared cluster → its folder. Children have a process group of
// their own, so that Ctrl-C reaches the lab alone; on Linux they die with it when it is killed.
//
// # Allowed imports
//
// The root, wire, client, fault, embedpg, pgx. Not the server's rooms: what they promise is judged from outside, and the
// SQL here is written anew, so that a mistake of theirs is not repeated.
package lab
