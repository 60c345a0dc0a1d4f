package embedpg

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ourParams differ from PostgreSQL's own defaults, or are promises that should be read in
// one place. Config.Params wins over them.
var ourParams = map[string]string{
	"listen_addresses":        "", // no TCP: no port to find taken, nobody else on the machine
	"unix_socket_permissions": "0700",
	"fsync":                   "on",
	"synchronous_commit":      "on",
	"full_page_writes":        "on",
	"timezone":                "UTC",
	"log_timezone":            "UTC",
	"lc_messages":             "C", // launch reads the log
	"log_line_prefix":         "%m [%p] %q%u@%d ",
}

// includeConf makes a new cluster read posthorn.conf. The path is relative, so that the
// data folder can be moved; the file lies outside data, where PostgreSQL's user cannot
// put a link in the place of a file that root writes.
func includeConf(dataDir string) error {
	file, err := os.OpenFile(filepath.Join(dataDir, "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n# Written at every start of Posthorn, do not edit; ALTER SYSTEM wins over it.\ninclude_if_exists = '../posthorn.conf'\n")
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// writeConf writes posthorn.conf, which PostgreSQL's user must be able to read.
func writeConf(f folder, params map[string]string, acct account) error {
	all := maps.Clone(ourParams)
	for name, value := range params {
		all[strings.ToLower(name)] = value
	}
	var b strings.Builder
	b.WriteString("# Written at every start of Posthorn, do not edit; ALTER SYSTEM wins over it.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(all[name])
		fmt.Fprintf(&b, "%s = '%s'\n", name, value)
	}
	if err := writeFile(f.conf(), b.String(), 0o640); err != nil {
		return err
	}
	if acct.cred == nil {
		return nil
	}
	return os.Lchown(f.conf(), -1, acct.gid)
}
