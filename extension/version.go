package extension

import "fmt"

// Version of the SQL side, as tailor.installation and the extension have it.
const Version = "0.3.0"

// earlier versions, from which ALTER EXTENSION can upgrade.
var earlier = []string{"0.1.0", "0.2.0"}

// ExtensionScript is [Script] as CREATE EXTENSION and ALTER EXTENSION run it:
// it also tells pg_dump which tables hold data.
func ExtensionScript() string { return Script() + part("dump.sql") }

// Files are what PostgreSQL wants in its folder of extensions, by name. As the
// script is idempotent, an upgrade runs the whole of it.
func Files() map[string]string {
	files := map[string]string{
		"tailor.control": fmt.Sprintf(`comment = 'answers about protected tables, de-identified'
default_version = '%s'
relocatable = false
superuser = true
`, Version),
		fmt.Sprintf("tailor--%s.sql", Version): ExtensionScript(),
	}
	for _, v := range earlier {
		files[fmt.Sprintf("tailor--%s--%s.sql", v, Version)] = ExtensionScript()
	}
	return files
}
